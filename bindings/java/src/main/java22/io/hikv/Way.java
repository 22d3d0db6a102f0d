package io.hikv;

/** The choice of a way to the native half, for Java 22 and later. */
final class Way {
    private Way() {}

    /**
     * Returns the way that the property {@code hikv.native} names: {@code ffm}, which is the default, or {@code jni}.
     *
     * @throws UnsatisfiedLinkError if there is no such way, or Java denies it
     */
    static Native choose() {
        String wanted = System.getProperty("hikv.native", "ffm");
        try {
            return switch (wanted) {
                case "ffm" -> new Ffm().checked();
                case "jni" -> new Jni().checked();
                default -> throw new UnsatisfiedLinkError("hikv.native is '" + wanted + "'; it can be 'ffm' or 'jni'");
            };
        } catch (IllegalCallerException | ExceptionInInitializerError e) {
            if (e instanceof ExceptionInInitializerError && !(e.getCause() instanceof IllegalCallerException)) {
                throw e;
            }
            // Since Java 24, both ways need the same permission.
            UnsatisfiedLinkError error = new UnsatisfiedLinkError(
                    "Java denies native access; start it with --enable-native-access=ALL-UNNAMED");
            error.initCause(e);
            throw error;
        }
    }
}
