package io.hikv.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The program in the README. It runs as a user would run it, and prints what the page says. */
class PagesTest {
    @TempDir
    Path dir;

    @Test
    void theFirstProgramPrintsWhatItsPageSays() throws Exception {
        String page = Files.readString(Path.of(System.getProperty("hikv.pages"), "README.md"));
        Files.writeString(dir.resolve("Words.java"), block(page, "java"));
        List<String> command = List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-cp", System.getProperty("java.class.path"), "Words.java");
        Process process = new ProcessBuilder(command).directory(dir.toFile()).redirectErrorStream(true).start();
        String printed = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), printed);
        assertEquals(block(page, "text"), printed);
        assertTrue(Files.exists(dir.resolve("state/words/state.hikv")), "state is kept in hikv");
    }

    /** Returns the first block of a language. */
    private static String block(String page, String language) {
        Matcher blocks = Pattern.compile("```" + language + "\n(.*?)```", Pattern.DOTALL).matcher(page);
        assertTrue(blocks.find(), language);
        return blocks.group(1);
    }
}
