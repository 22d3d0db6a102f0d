package io.hikv.kafka;

import java.util.Map;
import java.util.Objects;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.processor.BatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The part that all kinds of state stores share: opening, restoring, committing and closing. */
abstract class HikvStateStore implements StateStore {
    private static final Logger LOG = LoggerFactory.getLogger(HikvStateStore.class);

    private final String name;
    private StateStoreContext context;
    private volatile State state;

    HikvStateStore(String name) {
        this.name = Objects.requireNonNull(name, "the store's name is null");
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public void init(StateStoreContext context, StateStore root) {
        this.context = context;
        State opened = new State(Mode.of(context.appConfigs()), context.stateDir().toPath(), name);
        state = opened;
        opened(opened);
        BatchingStateRestoreCallback restore = records -> records.forEach(record -> restore(record.key, record.value));
        context.register(root, restore);
    }

    /** Prepares the state that was opened. */
    void opened(State state) {}

    /** Applies a record of the changelog, whose value is null for a deleted key. */
    abstract void restore(byte[] key, byte[] value);

    /** Returns the state, if the store is open. */
    final State state() {
        State open = state;
        if (open == null) {
            throw new InvalidStateStoreException("store " + name + " is closed");
        }
        return open;
    }

    /** Counts a record that is dropped because it is older than the retention. */
    final void countDropped() {
        LOG.warn("Skipping record for expired segment.");
        if (context.metrics() instanceof StreamsMetricsImpl metrics) {
            TaskMetrics.droppedRecordsSensor(Thread.currentThread().getName(), context.taskId().toString(), metrics)
                .record();
        }
    }

    /** Notes the record that is processed now as seen by the store. */
    final void advancePosition() {
        context.recordMetadata().ifPresent(record -> {
            if (record.topic() != null) {
                state().position().withComponent(record.topic(), record.partition(), record.offset());
            }
        });
    }

    @Override
    public void commit(Map<TopicPartition, Long> changelogOffsets) {
        state().commit(changelogOffsets);
    }

    @Override
    public Long committedOffset(TopicPartition partition) {
        return state().committedOffset(partition);
    }

    /** Returns the bytes of the writes that no commit has covered; Kafka Streams 4.4 commits early on them. */
    public long approximateNumUncommittedBytes() {
        return state().waitingBytes();
    }

    @Override
    public boolean managesOffsets() {
        return true;
    }

    @Override
    public boolean persistent() {
        return true;
    }

    @Override
    public boolean isOpen() {
        return state != null;
    }

    @Override
    public Position getPosition() {
        return state().position();
    }

    @Override
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
        return StoreQueryUtils.handleBasicQueries(query, bound, config, this, getPosition(), context);
    }

    @Override
    public void close() {
        State open = state;
        if (open != null) {
            state = null;
            open.close();
        }
    }
}
