package io.hikv;

/**
 * An error of a store. Each kind that a program may want to catch is a class of its own. Unless a method says
 * otherwise, nothing has changed after it.
 *
 * <p>An argument that no store could accept is an {@link IllegalArgumentException} instead, and null a
 * {@link NullPointerException}.
 */
public sealed class HikvException extends RuntimeException {
    private static final long serialVersionUID = 1;

    HikvException(String message) {
        super(message);
    }

    /** Returns the exception for an error of {@code hikv.h}. */
    static RuntimeException of(int code, String message) {
        return switch (code) {
            case -2 -> new Missing(message);
            case -3 -> new Locked(message);
            case -4 -> new Unusable(message);
            case -5 -> new Durability(message);
            case -6, -9, -10, -11, -25 -> new IllegalArgumentException(message);
            case -7 -> new Io(message);
            case -8 -> new Full(message);
            case ConditionFailed.CODE -> new ConditionFailed(message, -1);
            case -13 -> new Unsupported(message);
            case -14 -> new Forked(message);
            case -15 -> new ReadOnly(message);
            case -16 -> new Damaged(message);
            case -17 -> new Busy(message);
            case -19 -> new Format(message);
            case -20 -> new Fault(message);
            case -21 -> new Conflict(message);
            case -22 -> new Contended(message);
            case -23 -> new NoSuchTree(message);
            case -24 -> new TreeExists(message);
            default -> new HikvException(message);
        };
    }

    /** There is no store. */
    public static final class Missing extends HikvException {
        private static final long serialVersionUID = 1;

        Missing(String message) {
            super(message);
        }
    }

    /** Another process, or another object of this one, has the store open. */
    public static final class Locked extends HikvException {
        private static final long serialVersionUID = 1;

        Locked(String message) {
            super(message);
        }
    }

    /** The path is no store, or one of another engine. */
    public static final class Unusable extends HikvException {
        private static final long serialVersionUID = 1;

        Unusable(String message) {
            super(message);
        }
    }

    /** The storage does not provide the durability. */
    public static final class Durability extends HikvException {
        private static final long serialVersionUID = 1;

        Durability(String message) {
            super(message);
        }
    }

    /** The operating system refused. */
    public static final class Io extends HikvException {
        private static final long serialVersionUID = 1;

        Io(String message) {
            super(message);
        }
    }

    /** No space is left. */
    public static final class Full extends HikvException {
        private static final long serialVersionUID = 1;

        Full(String message) {
            super(message);
        }
    }

    /** The engine, or the store as it was opened, lacks the operation. */
    public static final class Unsupported extends HikvException {
        private static final long serialVersionUID = 1;

        Unsupported(String message) {
            super(message);
        }
    }

    /** The store was opened before a fork. */
    public static final class Forked extends HikvException {
        private static final long serialVersionUID = 1;

        Forked(String message) {
            super(message);
        }
    }

    /** The store was opened for reading. */
    public static final class ReadOnly extends HikvException {
        private static final long serialVersionUID = 1;

        ReadOnly(String message) {
            super(message);
        }
    }

    /** The store's bytes are damaged. */
    public static final class Damaged extends HikvException {
        private static final long serialVersionUID = 1;

        Damaged(String message) {
            super(message);
        }
    }

    /** Other handles or operations are in the way. */
    public static final class Busy extends HikvException {
        private static final long serialVersionUID = 1;

        Busy(String message) {
            super(message);
        }
    }

    /** The store has the format of another version of hikv. */
    public static final class Format extends HikvException {
        private static final long serialVersionUID = 1;

        Format(String message) {
            super(message);
        }
    }

    /** A fault of hikv. The store refuses everything from now on; close it and open it again. */
    public static final class Fault extends HikvException {
        private static final long serialVersionUID = 1;

        Fault(String message) {
            super(message);
        }
    }

    /** Another thread has changed what the transaction has read. */
    public static final class Conflict extends HikvException {
        private static final long serialVersionUID = 1;

        Conflict(String message) {
            super(message);
        }
    }

    /** The transaction was tried as often as allowed. */
    public static final class Contended extends HikvException {
        private static final long serialVersionUID = 1;

        Contended(String message) {
            super(message);
        }
    }

    /** There is no tree of this name, or it was dropped. */
    public static final class NoSuchTree extends HikvException {
        private static final long serialVersionUID = 1;

        NoSuchTree(String message) {
            super(message);
        }
    }

    /** There is a tree of this name. */
    public static final class TreeExists extends HikvException {
        private static final long serialVersionUID = 1;

        TreeExists(String message) {
            super(message);
        }
    }

    /** A condition of a batch does not hold. */
    public static final class ConditionFailed extends HikvException {
        static final int CODE = -12;
        private static final long serialVersionUID = 1;

        /** The number of the condition. */
        private final long condition;

        ConditionFailed(String message, long condition) {
            super(message);
            this.condition = condition;
        }

        /**
         * Returns the number of the condition among the batch's, from 0, or -1 for a deferred write.
         *
         * @return the number
         */
        public long condition() {
            return condition;
        }
    }
}
