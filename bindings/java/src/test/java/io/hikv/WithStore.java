package io.hikv;

import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** Tests that each have a new store. */
abstract class WithStore {
    @TempDir
    Path dir;

    Store store;

    @BeforeEach
    void open() {
        store = Stores.open(dir.resolve("store"));
    }

    @AfterEach
    void close() {
        store.close();
    }
}
