package io.hikv;

/** The operations of the native half and the results that are no errors: the numbers of {@code native/hikv_java.c}. */
final class Op {
    /** The version of these numbers. */
    static final long PROTOCOL_VERSION = 1;

    static final int ALLOCATE = 0;
    static final int FREE = 1;
    static final int OPEN = 2;
    static final int CLOSE = 3;
    static final int SYNC = 4;
    static final int LEN = 5;
    static final int STATS = 6;
    static final int BACKUP = 7;
    static final int VERSION = 8;
    static final int PROTOCOL = 9;
    static final int GET = 10;
    static final int GET_VERSION = 11;
    static final int MULTI_GET = 12;
    static final int CONTAINS = 13;
    static final int SCAN = 14;
    static final int PUT = 20;
    static final int PUT_TTL = 21;
    static final int INSERT = 22;
    static final int DELETE = 23;
    static final int INCREMENT = 24;
    static final int CLEAR = 25;
    static final int DELETE_RANGE = 26;
    static final int WRITE = 30;
    static final int DEFERRED_WRITE = 31;
    static final int IS_DURABLE = 32;
    static final int WAIT = 33;
    static final int SNAPSHOT_NEW = 40;
    static final int SNAPSHOT_FREE = 41;
    static final int SNAPSHOT_GET = 42;
    static final int TREE_OPEN = 50;
    static final int TREE_CLOSE = 51;
    static final int TREE_LIST = 52;
    static final int TREE_RENAME = 53;
    static final int TREE_SWAP = 54;
    static final int TREE_DROP = 55;
    static final int BEGIN = 60;
    static final int TX_GET = 61;
    static final int TX_PUT = 62;
    static final int TX_DELETE = 63;
    static final int TX_SCAN = 64;
    static final int TX_CHECK = 65;
    static final int TX_COMMIT = 66;
    static final int TX_ABORT = 67;

    /** The key is absent, or a write is not durable yet. */
    static final long ABSENT = Long.MIN_VALUE;
    /** The key exists. */
    static final long EXISTS = Long.MIN_VALUE + 1;

    private Op() {}
}
