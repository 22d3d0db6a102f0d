package io.hikv;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Locale;

/**
 * The file of the native library: the one that the property {@code hikv.library} names, or the one of this platform in
 * the jar, unpacked.
 *
 * <p>It is unpacked to a directory that is named by the user and the content, so that processes share it. A directory
 * or file that another user could have made or changed is not used; then this process unpacks its own.
 */
final class Library {
    private static final String NAME = "libhikv_java.so";
    private static final String ONLY_OWNER = "rwx------";

    private Library() {}

    /**
     * Returns the path of the library.
     *
     * @throws UnsatisfiedLinkError if this platform has none, or it cannot be unpacked
     */
    static Path path() {
        String named = System.getProperty("hikv.library");
        if (named != null) {
            return Path.of(named).toAbsolutePath();
        }
        String resource = "/native/" + platform() + "/" + NAME;
        try (InputStream stream = Library.class.getResourceAsStream(resource)) {
            if (stream == null) {
                throw new UnsatisfiedLinkError(
                        "the jar has no " + resource + "; the property hikv.library can name a library");
            }
            return unpacked(stream.readAllBytes());
        } catch (IOException e) {
            UnsatisfiedLinkError error = new UnsatisfiedLinkError(
                    "the native library cannot be unpacked to " + temporary() + ": " + e);
            error.initCause(e);
            throw error;
        }
    }

    private static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String processor = System.getProperty("os.arch");
        return system + "-" + (processor.equals("amd64") ? "x86_64" : processor);
    }

    private static Path temporary() {
        return Path.of(System.getProperty("java.io.tmpdir"));
    }

    private static Path unpacked(byte[] library) throws IOException {
        String user = System.getProperty("user.name").replaceAll("[^A-Za-z0-9_-]", "_");
        Path shared = temporary().resolve("hikv-" + user + "-" + hash(library));
        try {
            Files.createDirectory(
                    shared, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(ONLY_OWNER)));
        } catch (FileAlreadyExistsException e) {
            // By this user, as the next lines find out.
        }
        // A new directory shows who this user is to the file system.
        Path own = Files.createTempDirectory(temporary(), "hikv-");
        Path unshared = own.resolve(NAME);
        // In the reverse order: the file, then the directory. A file that was not written completely is one of them.
        own.toFile().deleteOnExit();
        unshared.toFile().deleteOnExit();
        if (!isPrivate(shared, own)) {
            return Files.write(unshared, library);
        }
        Path target = shared.resolve(NAME);
        if (!isIntact(target, library)) {
            Files.move(Files.write(unshared, library), target, StandardCopyOption.ATOMIC_MOVE);
        }
        Files.delete(own);
        return target;
    }

    /** Returns true if only the owner of {@code own} can change the directory. */
    private static boolean isPrivate(Path dir, Path own) throws IOException {
        PosixFileAttributes found = Files.readAttributes(dir, PosixFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
        return found.isDirectory()
                && found.owner().equals(Files.getOwner(own))
                && found.permissions().equals(PosixFilePermissions.fromString(ONLY_OWNER));
    }

    private static boolean isIntact(Path file, byte[] library) throws IOException {
        return Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) && Arrays.equals(Files.readAllBytes(file), library);
    }

    private static String hash(byte[] library) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(library);
            return HexFormat.of().formatHex(digest, 0, 8);
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every Java has SHA-256", e);
        }
    }
}
