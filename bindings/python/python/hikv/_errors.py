"""The exceptions of hikv."""


class Error(Exception):
    """Any error of a store. Nothing has changed, unless the function says otherwise."""


class Missing(Error):
    """There is no store at the path."""


class Locked(Error):
    """Another process, or another object of this one, has the store open."""


class Damaged(Error):
    """The store is damaged, or no store."""


class Durability(Error):
    """The storage does not provide the durability."""


class Full(Error, OSError):
    """No space is left."""


class ReadOnly(Error):
    """The store was opened for reading."""


class TooLong(Error):
    """A key, a value or a batch is too long."""


class ConditionFailed(Error):
    """A condition of a batch does not hold."""


class Unsupported(Error):
    """The engine, or the store as it was opened, lacks the operation."""


class NotANumber(Error):
    """The value is no 64-bit integer, or the sum would be none."""


class Conflict(Error):
    """Another thread has changed a key that the transaction has read."""


class Contended(Error):
    """The transaction was tried as often as allowed."""


class NoSuchTree(Error):
    """There is no tree of this name, or it was dropped."""


class TreeExists(Error):
    """There is a tree of this name."""


class Closed(Error, ValueError):
    """The store, or the part of it, was closed."""


class Forked(Error):
    """The store was opened before a fork: open it again in the child."""
