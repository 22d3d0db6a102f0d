package io.hikv;

/** The choice of a way to the native half. Java 22 and later have another version of this class. */
final class Way {
    private Way() {}

    /** Returns the way that the property {@code hikv.native} names, or the only one. */
    static Native choose() {
        String wanted = System.getProperty("hikv.native", "jni");
        if (!wanted.equals("jni")) {
            throw new UnsatisfiedLinkError("hikv.native is '" + wanted + "'; before Java 22 it can only be 'jni'");
        }
        return new Jni().checked();
    }
}
