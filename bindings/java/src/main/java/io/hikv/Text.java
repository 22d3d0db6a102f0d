package io.hikv;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Objects;

/** Names and paths as the native half takes them. */
final class Text {
    /** The character in place of bytes that Java could not decode. */
    private static final char UNDECODED = '\uFFFD';

    private Text() {}

    /**
     * Returns the name of a tree in UTF-8.
     *
     * @throws IllegalArgumentException if it has half of a character: another name would have the same bytes
     */
    static byte[] name(String name) {
        try {
            ByteBuffer encoded = StandardCharsets.UTF_8.newEncoder()
                    .encode(CharBuffer.wrap(Objects.requireNonNull(name, "the tree's name is null")));
            byte[] bytes = new byte[encoded.remaining()];
            encoded.get(bytes);
            return bytes;
        } catch (CharacterCodingException e) {
            throw new IllegalArgumentException("the tree's name '" + name + "' is not Unicode text", e);
        }
    }

    /**
     * Returns a path in UTF-8.
     *
     * @throws IllegalArgumentException if Java does not know all bytes of it: they would name another file
     */
    static byte[] path(Path path) {
        String text = path.toString();
        if (text.indexOf(UNDECODED) >= 0) {
            throw new IllegalArgumentException(
                    "the path " + text + " has bytes that Java cannot decode; start Java with a UTF-8 locale");
        }
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
