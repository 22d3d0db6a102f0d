package io.hikv;

/** The choice of a way to the native half, for Java 22 and later. */
final class Way {
    private Way() {}

    /**
     * Returns the way that the property {@code hikv.native} names: {@code ffm}, which is the default, or {@code jni}. The default
     * falls back to JNI with a warning, for example where the foreign-function API is denied.
     */
    static Native choose() {
        String wanted = System.getProperty("hikv.native", "");
        return switch (wanted) {
            case "jni" -> new Jni().checked();
            case "ffm" -> new Ffm().checked();
            case "" -> ffmIfAllowed();
            default -> throw new UnsatisfiedLinkError("hikv.native is '" + wanted + "'; it can be 'ffm' or 'jni'");
        };
    }

    private static Native ffmIfAllowed() {
        try {
            return new Ffm().checked();
        } catch (ExceptionInInitializerError e) {
            System.getLogger("io.hikv").log(System.Logger.Level.WARNING, "hikv uses JNI: " + e.getCause());
            return new Jni().checked();
        }
    }
}
