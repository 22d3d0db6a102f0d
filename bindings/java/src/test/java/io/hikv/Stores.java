package io.hikv;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** Stores and texts for tests. */
final class Stores {
    private Stores() {}

    static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, UTF_8);
    }

    static List<String> texts(Iterable<Item> items) {
        List<String> texts = new ArrayList<>();
        for (Item item : items) {
            texts.add(text(item.key()) + "=" + text(item.value()));
        }
        return texts;
    }

    /** Returns true if the tests are to make fewer cases. */
    static boolean isSlice() {
        return "slice".equals(System.getProperty("hikv.extent"));
    }

    /** Opens a store whose writes need not wait for a disk. */
    static Store open(Path dir) {
        return Store.open(dir, new Options().durability(Durability.PROCESS));
    }

    /** Makes a directory in memory, where there is such a place. */
    static Path inMemory() throws IOException {
        return Files.createTempDirectory(Path.of(System.getProperty("hikv.memory")), "hikv-");
    }

    static void delete(Path dir) throws IOException {
        try (Stream<Path> files = Files.walk(dir)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
