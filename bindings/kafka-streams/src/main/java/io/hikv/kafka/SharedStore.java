package io.hikv.kafka;

import io.hikv.Durability;
import io.hikv.HikvException;
import io.hikv.Options;
import io.hikv.Store;
import io.hikv.Tree;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The one hikv store of an application's state directory, shared by all its tasks and state stores. Each state store
 * has a tree of its own. The last user closes the hikv store.
 *
 * <p>Kafka Streams discards a task's state by deleting the task's directory. So a file in that directory, the mark,
 * names the tree: a tree without a mark is cleared when its state store opens, and dropped when the process opens the
 * store the next time.
 *
 * <p>Writes survive the end of the process. A power failure takes back the last of them, as whole batches, from all
 * trees; the changelogs hold them.
 */
final class SharedStore implements AutoCloseable {
    private static final String FILE = "state.hikv";
    private static final Map<Path, SharedStore> OPEN = new HashMap<>();

    private final Path directory;
    private final Store store;
    /** The state stores that use this, guarded by {@link #OPEN}. */
    private int users;

    private SharedStore(Path directory) {
        this.directory = directory;
        store = openFile(directory.resolve(FILE));
        try {
            for (String tree : trees()) {
                // A mark that cannot be looked for may exist.
                if (Files.notExists(directory.resolve(tree))) {
                    store.dropTree(tree);
                }
            }
        } catch (RuntimeException e) {
            store.close();
            throw e;
        }
    }

    private static Store openFile(Path file) {
        Options options = new Options().create(false).durability(Durability.PROCESS);
        try {
            return Store.open(file, options);
        } catch (HikvException.Missing e) {
            // None, or the directory of a process that was killed before it had made one. A store that is made without
            // asking for less than the storage allows has a journal on a disk.
            Store.open(file).close();
            return Store.open(file, options);
        }
    }

    /** Opens the store of a state directory, or joins those that use it. */
    static SharedStore open(Path stateDirectory) {
        try {
            Files.createDirectories(stateDirectory);
            Path directory = stateDirectory.toRealPath();
            synchronized (OPEN) {
                SharedStore shared = OPEN.get(directory);
                if (shared == null) {
                    shared = new SharedStore(directory);
                    OPEN.put(directory, shared);
                }
                shared.users++;
                return shared;
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Opens the tree of a state store, whose task has a directory. The tree is empty if the directory is new. */
    Tree tree(Path taskDirectory, String stateStore) {
        try {
            Path marks = Files.createDirectories(taskDirectory.resolve("hikv")).toRealPath();
            Path mark = marks.resolve(stateStore);
            Tree tree = store.tree(directory.relativize(mark).toString());
            if (!Files.exists(mark)) {
                tree.clear();
                // The mark must not outlive a power failure that the clearing does not.
                store.sync();
                Files.createFile(mark);
            }
            return tree;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns the names of the trees, which are the paths of their marks. */
    List<String> trees() {
        return store.trees();
    }

    /** Leaves the store. */
    @Override
    public void close() {
        synchronized (OPEN) {
            users--;
            if (users == 0) {
                OPEN.remove(directory);
                store.close();
            }
        }
    }
}
