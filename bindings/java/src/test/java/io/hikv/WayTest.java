package io.hikv;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The ways to the native half, and the unpacking of its library. */
class WayTest {
    private static final String PROGRAM = """
            import io.hikv.Store;
            class Program {
                public static void main(String[] args) {
                    try (Store store = Store.open(java.nio.file.Path.of("data"))) {
                        System.out.println("size " + store.size());
                    }
                }
            }
            """;

    @TempDir
    Path dir;

    /** Runs the program with options of Java. Returns what it prints. */
    private String run(String... options) throws Exception {
        return runThrough(List.of(), options);
    }

    /** Runs the program through a command. */
    private String runThrough(List<String> through, String... options) throws Exception {
        Files.writeString(dir.resolve("Program.java"), PROGRAM);
        List<String> command = new ArrayList<>(through);
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of(options));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), "Program.java"));
        Process process = new ProcessBuilder(command).directory(dir.toFile()).redirectErrorStream(true).start();
        String printed = new String(process.getInputStream().readAllBytes());
        process.waitFor();
        return printed;
    }

    private static void assertContains(String text, String part) {
        assertTrue(text.contains(part), () -> "'" + text + "' does not contain '" + part + "'");
    }

    @Test
    void theWayIsTheOneThatWasChosen() {
        String wanted = System.getProperty("hikv.native");
        assertEquals(wanted, Native.LIBRARY.getClass().getSimpleName().toLowerCase());
    }

    @Test
    void aWayOrLibraryThatIsMissingIsNamed() throws Exception {
        assertContains(run("-Dhikv.native=other"), "hikv.native is 'other'");
        assertContains(run("-Dhikv.library=/none/such.so"), "/none/such.so");
        Files.writeString(dir.resolve("text.so"), "text");
        assertContains(run("-Dhikv.library=" + dir.resolve("text.so")), "text.so");
        assertContains(run("-Djava.io.tmpdir=" + dir.resolve("none")), "cannot be unpacked to " + dir.resolve("none"));
    }

    @Test
    void deniedAccessIsNamed() throws Exception {
        assumeTrue(Runtime.version().feature() >= 24, "earlier versions of Java have no such option");
        for (String way : List.of("ffm", "jni")) {
            assertContains(run("--illegal-native-access=deny", "-Dhikv.native=" + way),
                    "--enable-native-access=ALL-UNNAMED");
        }
    }

    @Test
    void processesShareTheUnpackedLibraryUnlessItWasChanged() throws Exception {
        Path temporary = Files.createDirectory(dir.resolve("temporary"));
        String option = "-Djava.io.tmpdir=" + temporary;
        assertContains(run(option), "size 0");
        Path unpacked = onlyEntry(temporary);
        assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(unpacked)));
        Path library = onlyEntry(unpacked);
        byte[] content = Files.readAllBytes(library);
        Object file = Files.getAttribute(library, "unix:ino");
        assertContains(run(option), "size 0");
        assertEquals(file, Files.getAttribute(onlyEntry(onlyEntry(temporary)), "unix:ino"));

        Files.writeString(library, "changed");
        assertContains(run(option), "size 0");
        assertArrayEquals(content, Files.readAllBytes(library));

        // A directory that others can write to is not used, whatever it contains.
        Files.writeString(library, "changed");
        Files.setPosixFilePermissions(unpacked, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertContains(run(option), "size 0");
        assertEquals("changed", Files.readString(library));
        // The copy that was used ends with its process.
        assertEquals(unpacked, onlyEntry(temporary));
    }

    @Test
    void aLibraryThatDoesNotFitIsNamedAndLeavesNoPart() throws Exception {
        Path temporary = Files.createDirectory(dir.resolve("temporary"));
        List<String> limited = List.of("bash", "-c", "ulimit -f 512; exec \"$@\"", "limited");
        assertContains(runThrough(limited, "-Djava.io.tmpdir=" + temporary), "cannot be unpacked to " + temporary);
        try (Stream<Path> left = Files.walk(temporary)) {
            assertEquals(List.of(), left.filter(Files::isRegularFile).toList());
        }
        assertContains(run("-Djava.io.tmpdir=" + temporary), "size 0");
    }

    private static Path onlyEntry(Path directory) throws IOException {
        try (Stream<Path> entries = Files.list(directory)) {
            List<Path> all = entries.toList();
            assertEquals(1, all.size(), all::toString);
            return all.get(0);
        }
    }
}
