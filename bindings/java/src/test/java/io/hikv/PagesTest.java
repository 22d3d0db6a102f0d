package io.hikv;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The programs in the pages of this package. They run as a user would run them, and print what the pages say. */
class PagesTest {
    private static final Path PAGES = Path.of(System.getProperty("hikv.pages"));

    @TempDir
    Path dir;

    @Test
    void theFirstProgramPrintsWhatItsPageSays() throws Exception {
        String program = check("README.md", "First");
        assertEquals(10, program.lines().count(), "lines");
    }

    @Test
    void theMovedProgramPrintsWhatItsPageSays() throws Exception {
        check("coming-from-rocksdb.md", "Move");
    }

    private String check(String page, String name) throws Exception {
        String text = Files.readString(PAGES.resolve(page));
        String program = block(text, "java", "class " + name);
        Files.writeString(dir.resolve(name + ".java"), program);
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        if (Runtime.version().feature() >= 22) {
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), name + ".java"));
        Process process = new ProcessBuilder(command).directory(dir.toFile()).redirectErrorStream(true).start();
        String printed = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), printed);
        assertEquals(block(text, "text", " = "), printed);
        return program;
    }

    /** Returns the first block of a language that contains a text. */
    private static String block(String page, String language, String content) {
        Matcher blocks = Pattern.compile("```" + language + "\n(.*?)```", Pattern.DOTALL).matcher(page);
        boolean isFound = false;
        while (!isFound && blocks.find()) {
            isFound = blocks.group(1).contains(content);
        }
        assertTrue(isFound, () -> "no block with '" + content + "'");
        return blocks.group(1);
    }
}
