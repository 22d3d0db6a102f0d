"""What is asked for, drawn from a seed, and what may differ."""

import hashlib
import random
import re
import time

from payloads import HASH_DUMPS, LIST_DUMPS, SET_DUMPS, STRING_DUMPS, WRONG_DUMPS, ZSET_DUMPS

KEYS = ["k0", "k1", "k2", "k3", "h0", "s0", "app:1", "", "\xff\x01x", "n0", "n1", "f0", "z0"]
# Most requests of a type name keys of it; the others meet other types.
HASH_KEYS = 4 * ["h0", "h1"] + ["k0", "s0"]
SET_KEYS = 4 * ["s0", "s1", "s2"] + ["k0", "h0"]
# Their order differs, so they occur nowhere else.
FIELDS = ["f:1", "f:2", "f:\xff", "f:" + 70 * "x", "101", "-102", "n:1"]
HASH_VALUES = ["v:1", "v:2", "v:" + 70 * "x"]
# Those of sorted sets. Another one, `lex`, has members with one score: without that, ranges of members are undefined.
SORTED_KEYS = ["z0", "z0", "z1", "z2", "k0"]
# Keys of lists.
LIST_KEYS = ["l0", "l1", "l2", "l3"]
# Streams, ids, and groups or consumers of them.
STREAM_KEYS = 4 * ["x0", "x1"] + ["k0", "h0"]
STREAM_IDS = ["0", "1", "1-1", "1-2", "2-0", "2-5", "3", "4-1", "7-7", "9", "0-0", "18446744073709551615-18446744073709551615", "abc", "1-", "-1", ""]
STREAM_NEW_IDS = ["1-*", "2-*", "3-*", "7-*", "1-1", "2-1", "3-1", "4-1", "5", "6", "7-7", "8", "9", "10-*", "11", "12-3", "13-*", "14", "0-0", "abc"]
STREAM_ENDS = 4 * ["-", "+"] + ["(1-1", "(2-0", "(-", "(abc"] + STREAM_IDS
GROUPS = ["g1", "g2"]
CONSUMERS = ["c1", "c2", "c3"]
MEMBERS = ["m1", "m2", "m3", "m4", "1", "-1", "", "m\xff\x00", "x" * 70]
SCORE_ENDS = ["-inf", "+inf", "(1", "1", "2", "(2.5", "-2.25", "100", "", "(", " 1", "1 ", "nan", "abc", "(inf", "3e3", "1e400"]
MEMBER_ENDS = ["-", "+", "[m1", "(m1", "[m3", "(m3", "[", "(", "[zz", "m1", "", "(+", "[-1"]
INTEGERS = ["0", "1", "-1", "2", "3", "7", "8", "10", "100", "31", "32", "63", "64", "4294967295", "4294967296", "-2", "-100"]
EDGES = ["9223372036854775807", "-9223372036854775808", "9223372036854775808", "2147483647", "2147483648"]
NO_INTEGERS = ["abc", "", " 1", "1 ", "+1", "01", "-0", "1.5", "0x10", "1e3"]
FLOATS = ["0", "1.5", "-2.25", "3.0e3", "nan", "inf", "abc", "", " 1", "5.0e-2", "1e15", "0.1", "100"]
VALUES = ["", "a", "foo", "foobar", "ohmytext", "mynewtext", "12", "-7", "0", "10.5", "\x00\xff\x80", "x" * 44, "y" * 45, "z" * 70]
CHANNELS = ["news", "newest", "other", "__keyspace@0__:k0", "__keyevent@0__:set"]
PATTERNS = ["*", "k*", "k?", "[kn]0", "new*", "__key*", "\\k0", "nothing"]
EXPIRY = ["100", "1000", "2000", "0", "-1", "abc", "9223372036854775807", "9223372036854775"]
MILLISECONDS = ["100000", "1000000", "0", "-1", "abc", "9223372036854775807"]
LATER = 4102444800
MOMENTS = [str(LATER), str(LATER * 1000), "1", "-1", "0"]

# One a line; `\n` is a line end.
SCRIPTS = r"""
return redis.call('get', KEYS[1])
return redis.call('set', KEYS[1], ARGV[1])
return {KEYS[1], ARGV[1], #KEYS, #ARGV}
return redis.call('incr', KEYS[1])
redis.call('set', KEYS[1], ARGV[1]) return redis.call('incr', KEYS[1])
redis.call('set', KEYS[1], ARGV[1]) error('failed')
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end
local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('expire', KEYS[1], 100) end return n
redis.call('del', KEYS[1]) redis.call('append', KEYS[1], 'x') return {redis.call('strlen', KEYS[1]), redis.call('exists', KEYS[1])}
return redis.call('mget', KEYS[1], 'k0', 'k1')
redis.call('select', 1) redis.call('set', KEYS[1], ARGV[1]) return 1
redis.call('publish', 'news', ARGV[1]) return redis.call('set', KEYS[1], ARGV[1])
redis.setresp(3) return redis.call('get', KEYS[1])
redis.setresp(3) return {redis.call('mget', KEYS[1], 'k1'), true, false}
local ok, e = pcall(redis.call, 'incr', KEYS[1]) return {tostring(ok), tostring(e)}
return redis.pcall('incr', KEYS[1])
return redis.pcall('nosuch', KEYS[1])
return redis.call('get')
return {err = ARGV[1]}
return {ok = ARGV[1]}
return redis.error_reply(ARGV[1])
return redis.status_reply(ARGV[1])
return redis.sha1hex(ARGV[1])
return {1, 2.9, -1.5, 'a', true, false, {1, {2}}, nil, 3}
return {double = 3.5}
return {map = {[ARGV[1]] = 1}}
return {set = {[ARGV[1]] = true}}
return {big_number = '12345678901234567890'}
return {verbatim_string = {string = ARGV[1], format = 'txt'}}
return tonumber(ARGV[1])
return tostring(tonumber(ARGV[1]))
return cjson.encode({ARGV[1], tonumber(ARGV[1]) or cjson.null, {}})
return cjson.encode(cjson.decode(ARGV[1]))
return cjson.encode(cjson.decode('{"a": [1, 2.5, null, "x\\u00e9", {}]}').a)
return cmsgpack.pack(ARGV[1], tonumber(ARGV[1]), {1, {a = ARGV[1]}})
return {cmsgpack.unpack(cmsgpack.pack(ARGV[1], tonumber(ARGV[1]) or 7))}
return {cmsgpack.unpack(ARGV[1])}
return struct.pack('>I2sd', #ARGV[1], ARGV[1], 1.5)
return {struct.unpack('>I2B', ARGV[1])}
return {bit.band(tonumber(ARGV[1]) or 5, 255), bit.tohex(tonumber(ARGV[1]) or 5), bit.lshift(1, tonumber(ARGV[1]) or 5)}
global = 1
return global
return x(
#!lua flags=no-writes\nreturn redis.call('set', KEYS[1], 'x')
#!lua flags=allow-oom\nreturn redis.call('set', KEYS[1], 'x')
#!lua flags=what\nreturn 1
local t = {} for i = 1, 300 do t[i] = redis.call('incr', KEYS[1]) end return t[300]
return redis.call('eval', 'return 1', 0)
return redis.call('subscribe', 'news')
return redis.acl_check_cmd('get', KEYS[1])
return string.format('%s %5.1f', ARGV[1], 2.25)
""".strip().splitlines()
SCRIPTS = [script.replace("\\n", "\n") for script in SCRIPTS]
HASHES = [hashlib.sha1(script.encode("latin-1")).hexdigest() for script in SCRIPTS] + ["abc", "f" * 40]
# They run any request.
RUNNERS = ["return redis.call(unpack(ARGV))", "return redis.pcall(unpack(ARGV))", "redis.setresp(3) return redis.pcall(unpack(ARGV))"]

# XK key that is often a stream, XI id, XN id of a new entry, XE end of a range, XG group, XC consumer,
# K key, LK that of a list, LE its element, DS DH DA DZ DL values in the form of DUMP, DW a damaged one, ZK key that is often a sorted set, ZM its member, ZS end of a range of scores, ZL end of a range of members, X key that is often a hash, A key that is often a set, I field or member, G value of a field, V value, N integer, F float, S channel, P pattern, E time to live, M the same in milliseconds, T moment, B bit, O bit offset, W one that is written to, R place in a value,
# D database, L script, H hash of a script, Q any request, / choice, ? left out half of the time, * any number of times.
GRAMMAR = """
APPEND K V
DECR K
DECRBY K N
GET K
GET K
GETDEL K
GETEX K ?(EX E|PX M|EXAT T|PXAT T|PERSIST)
GETRANGE K R R
SUBSTR K R R
GETSET K V
INCR K
INCR K
INCRBY K N
INCRBYFLOAT K F
LCS K K ?(LEN) ?(IDX) ?(MINMATCHLEN N) ?(WITHMATCHLEN)
MGET K K K
MSET K V K V
MSETNX K V K V
PSETEX K M V
SET K V
SET K V
SET K V ?(NX|XX) ?(GET) ?(EX E|PX M|EXAT T|PXAT T|KEEPTTL)
SETEX K E V
SETNX K V
SETRANGE K R V
STRLEN K
BITCOUNT K ?(R R) ?(BYTE|BIT)
BITFIELD K *(GET Y O|SET Y W N|INCRBY Y W N|OVERFLOW (WRAP|SAT|FAIL|what))
BITFIELD K OVERFLOW (WRAP|SAT|FAIL) (SET|INCRBY) Z W J SET Z W J GET Z W
BITFIELD K OVERFLOW (WRAP|SAT|FAIL) (SET|INCRBY) Z W J ?(INCRBY Z W J) ?(GET Z W)
BITFIELD_RO K *(GET Y O|SET Y O N)
BITOP (AND|OR|XOR|NOT|NAND) K K ?(K)
BITPOS K B ?(R) ?(R) ?(BYTE|BIT)
GETBIT K O
SETBIT K W B
HSET X I G ?(I G)
HSET X I G
HSET X I G I G
HSET X n:1 N
HMSET X I G ?(I)
HSETNX X I G
HGET X I
HGET X I
HMGET X I I n:1
HDEL X I ?(I)
HEXISTS X I
HLEN X
HSTRLEN X I
HGETALL X
HKEYS X
HVALS X
HINCRBY X n:1 N
HINCRBY X I N
HINCRBYFLOAT X n:1 F
HSCAN X 0 ?(MATCH P) COUNT 1000
HSCAN X abc ?(COUNT (0|abc))
HRANDFIELD X 100 ?(WITHVALUES)
HRANDFIELD X (0|abc|9223372036854775807) ?(WITHVALUES|what)
HRANDFIELD X -9223372036854775808
SADD A I ?(I) ?(I)
SADD A I I I
SADD A I I
SREM A I ?(I)
SISMEMBER A I
SMISMEMBER A I I
SMEMBERS A
SCARD A
SMOVE A A I
SPOP A (0|100|-1|abc)
SRANDMEMBER A (0|100|abc)
SSCAN A 0 ?(MATCH P) COUNT 1000
(SINTER|SUNION|SDIFF) A A ?(A)
(SINTERSTORE|SUNIONSTORE|SDIFFSTORE) A A ?(A)
(SINTERSTORE|SUNIONSTORE|SDIFFSTORE) K A A
SINTERCARD (1|2|0|abc) A A ?(LIMIT N)
TYPE X
TYPE A
COPY X X ?(DB D) ?(REPLACE)
RENAME A A
EXPIRE X E
PERSIST A
DEL X
SCAN 0 COUNT 1000 TYPE (hash|set|HASH|what)
COPY K K ?(DB D) ?(REPLACE)
DEL K ?(K)
EXISTS K ?(K)
KEYS P
MOVE K D
OBJECT (ENCODING|FREQ|what) K
OBJECT ENCODING K
RENAME K K
RENAMENX K K
SCAN 0 ?(MATCH P) COUNT 1000 ?(TYPE (string|list))
TOUCH K
TYPE K
UNLINK K ?(K)
WAIT 0 0
EXPIRE K E ?(NX|XX|GT|LT) ?(NX|XX|GT|LT)
EXPIREAT K T ?(NX|XX|GT|LT)
EXPIRETIME K
PERSIST K
PEXPIRE K M ?(NX|XX|GT|LT)
PEXPIREAT K T ?(NX|XX|GT|LT)
PEXPIRETIME K
PTTL K
TTL K
ZADD ZK F ZM
ZADD ZK F ZM F ZM F ZM
ZADD ZK F ZM F ZM F ZM
ZADD ZK ?(NX|XX) ?(GT|LT) ?(CH) ?(INCR) F ZM ?(F ZM)
ZADD ZK (NX|XX|GT|LT) (NX|XX|GT|LT|CH|INCR) F ZM ?(F ZM)
ZADD lex 0 ZM 0 ZM 0 ZM
ZREM lex ZM
ZRANDMEMBER lex 0 ?(WITHSCORES)
ZADD z2 F ZM F ZM
ZCARD ZK
ZCOUNT ZK ZS ZS
ZDIFF 2 ZK ZK ?(WITHSCORES)
ZDIFF 3 ZK ZK ZK ?(WITHSCORES)
ZDIFFSTORE ZK 2 ZK ZK
ZINCRBY ZK F ZM
ZINTER 2 ZK ZK ?(WEIGHTS F F) ?(AGGREGATE (SUM|MIN|MAX|what)) ?(WITHSCORES)
ZINTERCARD (1|2|0|abc) ZK ZK ?(LIMIT (0|1|-1|abc))
ZINTERSTORE ZK 2 ZK ZK ?(WEIGHTS F F) ?(AGGREGATE (SUM|MIN|MAX))
ZLEXCOUNT lex ZL ZL
ZMPOP (1|2|0|3|abc) ZK ZK (MIN|MAX|what) ?(COUNT (1|2|0|abc|100))
ZMSCORE ZK ZM ZM
ZPOPMAX ZK ?(R)
ZPOPMIN ZK ?(R)
ZRANDMEMBER ZK (0|abc|-9223372036854775808) ?(WITHSCORES|what)
ZRANGE ZK R R ?(REV) ?(WITHSCORES)
ZRANGE ZK 0 -1 WITHSCORES
ZRANGE ZK R R ?(BYSCORE|BYLEX) ?(REV) ?(LIMIT R R) ?(WITHSCORES)
ZRANGE ZK ZS ZS BYSCORE ?(REV) ?(LIMIT R R) ?(WITHSCORES)
ZRANGE lex ZL ZL BYLEX ?(REV) ?(LIMIT R R)
ZRANGEBYLEX lex ZL ZL ?(LIMIT R R)
ZRANGEBYSCORE ZK ZS ZS ?(WITHSCORES) ?(LIMIT R R)
ZRANGESTORE ZK ZK R R ?(REV)
ZRANGESTORE ZK ZK ZS ZS BYSCORE ?(REV) ?(LIMIT R R) ?(WITHSCORES)
ZRANGESTORE lex lex ZL ZL BYLEX ?(REV) ?(LIMIT R R)
ZRANK ZK ZM
ZREM ZK ZM ?(ZM)
ZREMRANGEBYLEX lex ZL ZL
ZREMRANGEBYRANK ZK R R
ZREMRANGEBYSCORE ZK ZS ZS
ZREVRANGE ZK R R ?(WITHSCORES)
ZREVRANGEBYLEX lex ZL ZL ?(LIMIT R R)
ZREVRANGEBYSCORE ZK ZS ZS ?(WITHSCORES) ?(LIMIT R R)
ZREVRANK ZK ZM
ZSCAN ZK 0 ?(MATCH (m*|x*|*1)) COUNT 1000
ZSCORE ZK ZM
ZUNION (1|2|3|0|abc) ZK ZK ?(WEIGHTS F F) ?(AGGREGATE (SUM|MIN|MAX|what)) ?(WITHSCORES)
ZUNIONSTORE ZK 2 ZK ZK ?(WEIGHTS F F) ?(AGGREGATE (SUM|MIN|MAX))
BZPOPMIN ZK ZK (0.01|-1|abc|nan|inf|1e30)
BZPOPMAX ZK 0.01
BZPOPMAX lex 0.01
BZMPOP 0.01 2 ZK ZK (MIN|MAX|what) ?(COUNT N)
OBJECT ENCODING ZK
XADD XK XN f:x V
XADD XK XN f:x V g:x V
XADD XK ?(NOMKSTREAM) ?((MAXLEN|MINID) ?(=|~) (0|1|2|3|5|abc|-1) ?(LIMIT (0|1|100|-1))) XN f:x V ?(f:y)
XLEN XK
XRANGE XK XE XE ?(COUNT (0|1|2|-1|abc))
XREVRANGE XK XE XE ?(COUNT (0|1|2|-1|abc))
XRANGE XK - +
XDEL XK XI ?(XI)
XTRIM XK (MAXLEN|MINID) ?(=) (0|1|2|3|5|2-1|abc|-1) ?(LIMIT (0|1|100|-1))
XSETID XK (20|30|1|abc) ?(ENTRIESADDED (0|5|50|-1)) ?(MAXDELETEDID (0|1|9|40))
XREAD ?(COUNT (0|1|2|abc)) ?(BLOCK (10|-1|abc)) STREAMS XK (XI|$|>)
XREAD ?(COUNT 1) STREAMS XK XK XI (XI|$)
XGROUP CREATE XK XG (0|$|1|2-0|abc) ?(MKSTREAM) ?(ENTRIESREAD (0|1|3|-1|-2|abc))
XGROUP CREATE XK XG 0 MKSTREAM
XGROUP SETID XK XG (0|$|1|2-0|abc|-) ?(ENTRIESREAD (0|1|3|-1))
XGROUP DESTROY XK XG
XGROUP (CREATECONSUMER|DELCONSUMER) XK XG XC
XGROUP (what|CREATE XK|DESTROY XK)
XREADGROUP GROUP XG XC ?(COUNT (0|1|2)) ?(NOACK) STREAMS XK >
XREADGROUP GROUP XG XC COUNT 1 STREAMS XK XK > >
XREADGROUP GROUP XG XC ?(COUNT (0|1|2)) ?(BLOCK 10) STREAMS XK (XI|>|$)
XACK XK XG XI XI XI
XACK XK XG XI ?(XI)
XPENDING XK XG
XPENDING XK XG ?(IDLE (0|100000000|abc)) XE XE (0|1|10|abc) ?(XC)
XCLAIM XK XG XC (0|0|0|100000000|abc) XI XI ?(IDLE (0|1000000000)) ?(RETRYCOUNT (0|7)) ?(FORCE) ?(JUSTID) ?(LASTID XI)
XAUTOCLAIM XK XG XC (0|0|0|100000000|abc) XE ?(COUNT (1|2|0|abc)) ?(JUSTID)
XINFO GROUPS XK
XINFO STREAM XK
XINFO STREAM XK FULL ?(COUNT (0|1|abc))
XINFO (CONSUMERS|CONSUMERS|GROUPS|what) XK XG
(TYPE|DEL|TTL|OBJECT ENCODING|PERSIST) XK
EXPIRE XK E
COPY XK XK ?(REPLACE)
RENAME XK XK
DBSIZE
FLUSHALL ?(ASYNC|SYNC|what)
FLUSHDB ?(ASYNC|SYNC)
SELECT D
SWAPDB D D
SWAPDB (0|1|2) (0|1|2)
MULTI
MULTI
MULTI
EXEC
EXEC
EXEC
DISCARD
WATCH K ?(K)
UNWATCH
PSUBSCRIBE P
PUBLISH S V
PUBLISH S V
PUBSUB (CHANNELS|NUMPAT|SHARDCHANNELS)
PUBSUB NUMSUB S
PUBSUB CHANNELS P
PUNSUBSCRIBE ?(P)
SPUBLISH S V
SSUBSCRIBE S
SUBSCRIBE S ?(S)
SUNSUBSCRIBE ?(S)
UNSUBSCRIBE ?(S)
CLIENT GETNAME
CLIENT SETNAME V
CLIENT NO-EVICT (ON|OFF)
CLIENT TRACKING (ON|OFF) ?(what)
CLIENT TRACKING ON ?(BCAST) ?(OPTIN|OPTOUT) ?(NOLOOP) ?(PREFIX K) ?(REDIRECT 999999)
CLIENT CACHING (YES|NO|what)
CLIENT PAUSE (-1|abc)
CLIENT TRACKINGINFO
CLIENT GETREDIR
CLIENT UNBLOCK 999999
CLIENT KILL ID 999999
CLIENT what
ECHO V
HELLO (2|3|4|what)
HELLO 3
HELLO 3 SETNAME V
PING ?(V)
QUIT
RESET
AUTH V ?(V)
ACL WHOAMI
ACL CAT (string|what|transaction)
ACL SETUSER ada (on|off|nopass|resetkeys|~k*|%R~n*|&new*|resetchannels|+what|>pw|allkeys)
ACL GETUSER (ada|default|nobody)
ACL DRYRUN (ada|default|nobody) (GET K|SET K V|SET K V GET|PUBLISH S V|FLUSHALL|MSET K V K V|what|GET)
ACL LIST
ACL USERS
COMMAND INFO C C
COMMAND INFO what C
COMMAND GETKEYS C K V
COMMAND GETKEYSANDFLAGS C K V
COMMAND GETKEYSANDFLAGS SET K V ?(GET)
COMMAND LIST FILTERBY PATTERN (get*|set)
COMMAND DOCS what what
CONFIG GET (maxmemory|appendonly|save|databases|nothing|notify-keyspace-events)
CONFIG SET notify-keyspace-events (KEA|Kg|E$x|what)
CONFIG SET nothing V
CONFIG RESETSTAT
FUNCTION (FLUSH|LIST|LIST LIBRARYNAME P WITHCODE|LIST what|KILL|DUMP|DELETE what)
LINDEX LK N
LINSERT LK (BEFORE|AFTER|what) LE LE
LLEN LK
LMOVE LK LK (LEFT|RIGHT) (LEFT|RIGHT|what)
LMPOP 1 LK (LEFT|RIGHT) ?(COUNT N)
LMPOP 2 LK LK (LEFT|RIGHT|what) ?(COUNT (0|1|2|100))
LMPOP N LK LEFT
LPOP LK ?(N)
RPOP LK ?(0|1|2|-1|abc)
LPOS LK LE *(RANK (0|1|3|-1|-2|100|9223372036854775807|abc)|COUNT N|MAXLEN N|what)
LPOS LK LE ?(RANK (1|2|-1|-2)) ?(COUNT (0|1|2)) ?(MAXLEN (0|1|3))
LPUSH LK LE ?(LE) ?(LE)
LPUSH LK LE LE LE LE
RPUSH LK LE ?(LE) ?(V)
RPUSH LK LE LE LE LE
LPUSHX LK LE ?(LE)
RPUSHX LK LE ?(LE)
LRANGE LK R R
LRANGE LK 0 -1
LREM LK (0|1|2|-1|-2|N) LE
LSET LK N LE
LSET LK (0|1|-1) LE
LTRIM LK R R
RPOPLPUSH LK LK
SORT LK ?(ASC|DESC|what) ?(ALPHA) ?(LIMIT R R) ?(STORE LK)
SORT LK ALPHA ?(DESC) ?(LIMIT N N)
SORT LK BY (k*|h*->f:1|nosort|*) ?(GET (#|k*|h*->f:1|k0)) ?(ASC|DESC) ?(GET #) ?(STORE LK)
SORT ZK (ALPHA|BY nosort|ASC) ?(DESC) ?(LIMIT R R)
SORT A ALPHA ?(DESC) ?(STORE LK)
SORT_RO LK ALPHA ?(STORE LK)
BLPOP LK LK (0.01|-1|abc|nan|inf|1e30)
BRPOP LK 0.01
BLMOVE LK LK (LEFT|RIGHT) (LEFT|RIGHT|what) (0.01|-1|abc)
BRPOPLPUSH LK LK 0.01
BLMPOP 0.01 2 LK LK (LEFT|RIGHT|what) ?(COUNT N)
RENAME LK LK
COPY LK LK REPLACE
(TYPE|DEL|TTL|OBJECT ENCODING|EXPIRE|PERSIST|WATCH) LK
EXPIRE LK E
SET LK V
CLUSTER (INFO|SLOTS|SHARDS|NODES|MYID|KEYSLOT K|COUNTKEYSINSLOT N|what)
(READONLY|READWRITE|ASKING)
SETBIT K 0 B
BITFIELD K ?(OVERFLOW FAIL) SET u8 0 N
GETEX K PERSIST
SET K V EX E EX E
EVAL L 1 K V
EVAL L 1 K V
EVAL L 2 K K V V
EVAL L 1 K N
EVAL L N K V
EVAL_RO L 1 K V
EVALSHA H 1 K V
EVALSHA H 1 K V
EVALSHA_RO H 1 K V
EVAL U 0 Q
EVAL U 0 Q
EVAL_RO U 0 Q
SCRIPT LOAD L
SCRIPT EXISTS H H
SCRIPT (FLUSH|FLUSH ASYNC|FLUSH what|EXISTS aaaa bbbb|what)
SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db
MODULE LIST
REPLICAOF NO ONE
LATENCY (LATEST|RESET|HISTORY command|what)
MEMORY (PURGE|what)
MEMORY USAGE nothing
ROLE
SLOWLOG (LEN|RESET|GET|GET 0|what)
RESTORE K 0 V ?(REPLACE) ?(ABSTTL) ?(IDLETIME N) ?(FREQ N)
SCRIPT KILL
RESTORE K M V REPLACE
RESTORE K (0|0|100000|1000000|-1|abc) DS ?(REPLACE) ?(ABSTTL)
RESTORE X 0 DH REPLACE
RESTORE X (0|0|100000|1000000|-1|abc) DH ?(REPLACE) ?(ABSTTL)
RESTORE A (0|0|100000|1000000|-1|abc) DA ?(REPLACE) ?(ABSTTL)
RESTORE ZK (0|0|100000|1000000|-1|abc) DZ ?(REPLACE) ?(IDLETIME N)
RESTORE LK (0|0|100000|1000000|-1|abc) DL ?(REPLACE) ?(FREQ N)
RESTORE K (0|0|100000|1000000|-1|abc) DW ?(REPLACE)
DUMP (K|X|A|ZK|LK)
what K V
""".strip().splitlines()

TYPES = ["u1", "u8", "i8", "u16", "i16", "u63", "i64", "u64", "i5", "u0", "what"]
OFFSETS = ["0", "1", "7", "8", "#0", "#1", "100", "4294967295", "4294967296", "-1", "abc", "#", "4294967288", "#536870911"]
# Nobody waits for values of 512 MiB.
# Integers of every width that there is, and numbers at the edges of those.
WIDTHS = [f"u{width}" for width in range(1, 64)] + [f"i{width}" for width in range(1, 65)] + 20 * ["u8", "i8", "u63", "i64"]
EDGES_OF_WIDTHS = [str(number) for width in (1, 7, 8, 31, 32, 62, 63) for edge in (2**width, -(2**width)) for number in (edge - 1, edge, edge + 1) if abs(number) < 2**63]
EDGES_OF_WIDTHS += ["0", "1", "-1", "-2", "100", "-100", str(-(2**63)), str(2**63 - 1)]
WRITTEN = ["0", "1", "7", "8", "#0", "#1", "100", "4294967296", "-1", "abc", "#"]
PLACES = ["0", "1", "-1", "2", "5", "-3", "100", "-100", "abc", "9223372036854775807", "-9223372036854775808"]
NAMES = "lpush lpop rpoplpush lmove lmpop lrange lpos lset blpop blmove blmpop brpoplpush bzpopmin bzmpop get set mset del unlink incr expire ttl exists watch subscribe publish copy rename bitop bitfield multi exec ping info object object|encoding config|set append strlen setrange getdel lcs move restore zadd zrange zunionstore zinter zmpop zrangestore memory|usage touch type persist".split()
RAW = [
    b"PING\r\n", b"GET k0\r\n", b'SET k0 "a b\\x41"\r\n', b"SET k0 'it\\'s'\r\n", b'SET k0 "open\r\n', b"\r\n\r\n", b"*0\r\n", b"*-1\r\n",
    b"*1\r\n$4\r\nPING\r\n", b"*1\r\n$-1\r\n", b"*1\r\n:4\r\n", b"*x\r\n", b"*2\r\n$3\r\nGET\r\n$x\r\n", b"*99999999999\r\n",
    b"*1\r\n$536870913\r\n", b"*1\r\n$04\r\nPING\r\n", b"*01\r\n$4\r\nPING\r\n", b"*+1\r\n$4\r\nPING\r\n", b"  ECHO   x  \r\n",
    b"*1\n$4\nPING\n", b"PING\n", b"get\tk0\r\n", b"*3\r\n$3\r\nSET\r\n$2\r\nk0\r\n$0\r\n\r\n", b"*1\r\n$\r\n", b"*\r\n",
]


class Draw:
    """The cases of one seed."""

    def __init__(self, seed, client_count):
        self.random = random.Random(seed)
        # Redis tells who tracks a key of one database of changes in all of them.
        self.has_tracking = self.random.random() < 0.5
        self.client_count = client_count

    def steps(self, count):
        steps = []
        for client in range(self.client_count):
            if self.random.random() < 0.4:
                steps.append([client, [["HELLO", "3"]]])
        for _ in range(count):
            client = self.random.randrange(self.client_count)
            length = self.random.choice([1, 1, 1, 1, 2, 3])
            if self.random.random() < 0.12:
                steps.append([client, [["MULTI"], *(self.request() for _ in range(length)), ["EXEC"]]])
            else:
                steps.append([client, [self.request() for _ in range(length)]])
        return steps

    def request(self):
        if self.random.random() < 0.01:
            return ["RAW", self.random.choice(RAW).decode("latin-1")]
        words = self.expand(self.random.choice(GRAMMAR))
        while self.is_left_out(words):
            words = self.expand(self.random.choice(GRAMMAR))
        # Another member than a field would be taken for a value.
        if self.random.random() < 0.03 and words[0] not in ("HELLO", "SADD"):
            words.append(self.random.choice(VALUES[:9]))
        if self.random.random() < 0.03 and len(words) > 1:
            words.pop()
        if self.random.random() < 0.05:
            words[0] = words[0].lower()
        return words

    def is_left_out(self, words):
        if self.has_tracking:
            return words[0] in ("SELECT", "SWAPDB", "MOVE") or "DB" in words
        return words[:2] == ["CLIENT", "TRACKING"]

    def expand(self, text):
        words = []
        for part in split(text):
            words += self.part(part)
        return words

    def part(self, part):
        if part[0] == "?":
            return self.part(part[1:]) if self.random.random() < 0.4 else []
        if part[0] == "*" and len(part) > 1:
            return [word for _ in range(self.random.randrange(4)) for word in self.part(part[1:])]
        if part[0] == "(":
            return self.expand(self.random.choice(split(part[1:-1], "|")))
        if part == "Q":
            return self.request()
        of = {"L": SCRIPTS, "H": HASHES, "U": RUNNERS} | {"X": HASH_KEYS, "A": SET_KEYS, "I": FIELDS, "G": HASH_VALUES, "K": KEYS, "V": VALUES, "F": FLOATS, "S": CHANNELS, "P": PATTERNS, "E": EXPIRY, "T": MOMENTS, "M": MILLISECONDS, "O": OFFSETS, "W": WRITTEN}
        of |= {"XK": STREAM_KEYS, "XI": STREAM_IDS, "XN": STREAM_NEW_IDS, "XE": STREAM_ENDS, "XG": GROUPS, "XC": CONSUMERS}
        of |= {"LK": LIST_KEYS, "LE": ["a", "b", "c", "d", ""]}
        of |= {"B": ["0", "1", "2", "abc"], "D": ["0", "1", "2", "15", "16", "-1", "abc"], "R": PLACES, "Y": TYPES, "C": NAMES, "Z": WIDTHS, "J": EDGES_OF_WIDTHS}
        of |= {"DS": STRING_DUMPS, "DH": HASH_DUMPS, "DA": SET_DUMPS, "DZ": ZSET_DUMPS, "DL": LIST_DUMPS, "DW": WRONG_DUMPS}
        of |= {"ZK": SORTED_KEYS, "ZM": MEMBERS, "ZS": SCORE_ENDS, "ZL": MEMBER_ENDS}
        of["N"] = INTEGERS * 3 + EDGES * 2 + NO_INTEGERS
        if part in of:
            # Few keys, so that requests meet.
            return [self.random.choice(of[part][:4] if part == "K" and self.random.random() < 0.6 else of[part])]
        return [part]


def split(text, between=" "):
    """The parts of a text that are not within brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == between and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts



# Entries of 'Where replies differ' in docs/redis.md that concern requests drawn here: either the request is not drawn, or its replies
# are made equal below.
EXPECTED = [
    "`INCRBYFLOAT`",
    "`OBJECT`, `DEBUG OBJECT`, `MEMORY USAGE`",
    "pushes of RESP3 that a client causes itself",
    "`COMMAND INFO`",
    "`HELLO`",
    "notification `new`",
    "`ACL LIST`, `ACL GETUSER`",
    "`ACL SETUSER`",
    "`CLIENT TRACKING`",
    "a request's arguments",
    "errors that repeat an argument",
    "`RANDOMKEY`",
    "score `-0`",
    "order of `ZSCAN`",
    "`DEBUG`",
    "string commands on collections",
]


def masked(told):
    """What was told, without what differs on purpose, the order where there is none, and the time."""
    return ordered(told)


PRINTABLE = re.compile("[ -~]*")
COMMAND = re.compile("[a-z][a-z|_-]*")
OWN = ["cas", "countrange", "prefix", "range"]
MESSAGES = ["message", "pmessage", "smessage"]
UNORDERED = set(KEYS) | set(HASH_KEYS) | set(SET_KEYS) | set(SORTED_KEYS) | set(LIST_KEYS) | set(STREAM_KEYS) | {"lex"} | set(CHANNELS) | set(PATTERNS)


def is_of(words, part):
    return isinstance(part, list) and part[0] == "$" and part[1] in words


def ordered(value):
    if not isinstance(value, list):
        return value
    value = [ordered(part) for part in value]
    match value:
        case ["-", str(text)]:
            return ["-", PRINTABLE.match(text)[0]]
        case [":", str(number)]:
            return [":", about(int(number))]
        # Each has its own encodings; scripts/redis-dumps compares what is in them.
        case ["$", str(text)] if len(text) > 10 and text[-10:-8] == "\x0a\x00":
            return "dump"
        # All are left in an order that is nobody's.
        case ["*" | ">", [["$", "unsubscribe" | "punsubscribe" | "sunsubscribe"], _, count]]:
            return [value[0], value[1][0], count]
        # As a score it is stored without its sign.
        case ["$" | ",", "-0"]:
            return [value[0], "0"]
        # ZSCAN has no order.
        case ["*", [["$", "0"], ["*", list(parts)]]] if len(parts) % 2 == 0:
            pairs = sorted(zip(parts[::2], parts[1::2]), key=repr)
            return ["*", [value[1][0], ["*", pairs]]]
        case ["$", "int" | "embstr" | "raw" | "listpack" | "hashtable" | "intset" | "skiplist"]:
            return "encoding"
        case ["~", list(parts)]:
            return ["~", sorted(parts, key=repr)]
        # Fields with their values, fields or members, values.
        case [kind, [*parts]] if len(parts) % 2 == 0 and parts and all(is_of(FIELDS, part) for part in parts[::2]) and not any(is_of(FIELDS, part) for part in parts[1::2]) and kind in "*%":
            return [kind, sorted(zip(parts[::2], parts[1::2]), key=repr)]
        case ["*", [*parts]] if any(is_of(FIELDS + HASH_VALUES, part) for part in parts):
            return ["*", sorted(parts, key=repr)]
        case ["*", [*parts]] if parts and all(part[0] == "*" and part[1] and isinstance(part[1][0], tuple) and is_of(FIELDS, part[1][0][0]) for part in parts):
            return ["*", sorted(parts, key=repr)]
        # A row of COMMAND INFO; tips are not told.
        case ["*", [["$", _], [":", _], [("*" | "~") as of_flags, flags], *places, _, keys, [("*" | "~") as last, subcommands]]] if len(value[1]) == 10:
            return ["row", value[1][:2], of_flags, flags, places, keys, last, sorted(subcommands, key=repr)]
        # Nor notes.
        case ["*" | "%", [["$", "notes"], _, *rest]]:
            return [value[0], rest]
        # Names of commands, among them hikv's own.
        case ["*", list(parts)] if len(parts) > 4 and all(part[0] == "$" and COMMAND.fullmatch(part[1] or "-") for part in parts):
            return ["*", sorted(part for part in parts if part[1] not in OWN)]
        case ["*", list(parts)] if all(part[0] == "$" and part[1] in UNORDERED for part in parts):
            return ["*", sorted(parts)]
        # Channels, of whatever names clients have given some of them.
        case ["*", [["$", first], *_]] if first not in MESSAGES and all(part[0] == "$" for part in value[1]) and any(part[1] in CHANNELS for part in value[1]):
            return ["*", sorted(value[1])]
        # Nodes of Redis' tree, and times.
        case ["*" | "%", [["$", "length"], *parts]]:
            return [value[0], [part for number, part in enumerate(parts) if number not in (2, 4)]]
        case ["*" | "%", [["$", "name"], name, ["$", "pending"], pending, ["$", "idle"], _]]:
            return [value[0], name, pending]
        case ["*", [["$", _] as entry, ["$", str(consumer)] as owner, [":", _], [":", count]]] if consumer in CONSUMERS:
            return ["pending", entry, owner, count]
        # The names of HELLO's figures that are each server's own.
        case ["*" | "%", list(parts)]:
            own = [number + 1 for number, part in enumerate(parts) if part in (["$", "id"], ["$", "version"])]
            return [value[0], ["own" if number in own else part for number, part in enumerate(parts)]]
    return value


def about(number):
    """A number, unless it is a time, which passes while the other server is asked."""
    now = time.time()
    for moment, name in [(now, "now"), (LATER - now, "until later"), (1000 * LATER - now, "until long after")]:
        if abs(number - moment) < 10_000 or abs(number / 1000 - moment) < 10_000:
            return name
    # Redis shares small numbers, unless they came by a float.
    if number == 2**31 - 1:
        return 1
    # What is left of the times to live that are asked for.
    for whole in (100, 1000, 2000, 100_000, 1_000_000):
        if 0.9 * whole < number <= whole:
            return whole
    return number
