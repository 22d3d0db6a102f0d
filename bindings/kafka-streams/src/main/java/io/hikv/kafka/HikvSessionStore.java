package io.hikv.kafka;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.Predicate;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;

/** A session store in a tree. An item's key is that of the changelog: key, end and start of the session. */
class HikvSessionStore extends HikvStateStore implements SessionStore<Bytes, byte[]> {
    private static final int SUFFIX = 2 * Long.BYTES;

    private final long retention;
    private Segments segments;

    HikvSessionStore(String name, long retention) {
        super(name);
        this.retention = retention;
    }

    @Override
    void opened(State state) {
        segments = new Segments(state, retention);
    }

    @Override
    void restore(byte[] key, byte[] value) {
        segments.put(end(key), key, value);
    }

    @Override
    public void put(Windowed<Bytes> session, byte[] value) {
        state();
        long end = session.window().end();
        if (!segments.put(end, stored(session.key(), end, session.window().start()), value)) {
            countDropped();
        }
        advancePosition();
    }

    @Override
    public void remove(Windowed<Bytes> session) {
        put(session, null);
    }

    @Override
    public byte[] fetchSession(Bytes key, long start, long end) {
        state();
        return segments.get(end, stored(Objects.requireNonNull(key, "the key is null"), end, start));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(long earliestEnd, long latestEnd) {
        // Also expired sessions: a session that is emitted at its end has expired then.
        return sessions(null, null, null, null, earliestEnd, latestEnd, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(Bytes key, long earliestEnd, long latestStart) {
        return ofKey(key, earliestEnd, latestStart, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes key, long earliestEnd, long latestStart) {
        return ofKey(key, earliestEnd, latestStart, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart) {
        return ofKeys(keyFrom, keyTo, earliestEnd, latestStart, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart) {
        return ofKeys(keyFrom, keyTo, earliestEnd, latestStart, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
        return ofKey(key, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
        return ofKey(key, 0, Long.MAX_VALUE, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo) {
        return ofKeys(keyFrom, keyTo, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo) {
        return ofKeys(keyFrom, keyTo, 0, Long.MAX_VALUE, false);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> ofKey(
            Bytes key, long earliestEnd, long latestStart, boolean forward) {
        Objects.requireNonNull(key, "the key is null");
        byte[] lo = stored(key, Math.max(0, earliestEnd), 0);
        byte[] hi = Keys.behind(stored(key, Long.MAX_VALUE, Long.MAX_VALUE));
        long earliest = Math.max(earliestEnd, segments.earliest());
        return sessions(key, key, lo, hi, earliest, Long.MAX_VALUE, latestStart, forward);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> ofKeys(
            Bytes from, Bytes to, long earliestEnd, long latestStart, boolean forward) {
        if (Keys.isEmpty(from, to)) {
            return new Peeking<>(state(), () -> null);
        }
        byte[] lo = from == null ? null : from.get();
        long earliest = Math.max(earliestEnd, segments.earliest());
        return sessions(from, to, lo, Keys.behindTimes(to), earliest, Long.MAX_VALUE, latestStart, forward);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> sessions(
            Bytes from, Bytes to, byte[] lo, byte[] hi, long earliestEnd, long latestEnd, long latestStart,
            boolean forward) {
        State open = state();
        Predicate<byte[]> accepts = stored -> earliestEnd <= end(stored) && end(stored) <= latestEnd
            && start(stored) <= latestStart && Keys.isWithin(key(stored), from, to);
        return Peeking.select(open, segments.range(earliestEnd, latestEnd, lo, hi, forward), accepts,
            stored -> new Windowed<>(key(stored), new SessionWindow(start(stored), end(stored))));
    }

    private static byte[] stored(Bytes key, long end, long start) {
        byte[] bytes = key.get();
        return ByteBuffer.allocate(bytes.length + SUFFIX).put(bytes).putLong(end).putLong(start).array();
    }

    private static Bytes key(byte[] stored) {
        return Bytes.wrap(Arrays.copyOf(stored, stored.length - SUFFIX));
    }

    private static long end(byte[] stored) {
        return ByteBuffer.wrap(stored).getLong(stored.length - SUFFIX);
    }

    private static long start(byte[] stored) {
        return ByteBuffer.wrap(stored).getLong(stored.length - Long.BYTES);
    }

    /** A store whose values begin with headers. */
    static final class WithHeaders extends HikvSessionStore implements HeadersBytesStore {
        WithHeaders(String name, long retention) {
            super(name, retention);
        }
    }
}
