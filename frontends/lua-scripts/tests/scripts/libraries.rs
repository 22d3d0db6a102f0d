//! The libraries of scripts. The expected replies are those of Redis 7.0.

use crate::Runner;

#[test]
fn libraries_answer_as_in_redis() {
    let mut runner = Runner::new();
    for (text, reply) in [
        ("return cjson.encode({1, 2, {a = 1}})", "$13 [1,2,{\"a\":1}]"),
        (
            "return cjson.encode({[1] = 1, [20] = 2})",
            "-ERR user_script:1: Cannot serialise table: excessively sparse array script: H, on @user_script:1.",
        ),
        ("return cjson.encode({})", "$2 {}"),
        (
            "return cjson.encode(0/0)",
            "-ERR user_script:1: Cannot serialise number: must not be NaN or Inf script: H, on @user_script:1.",
        ),
        (
            "return cjson.encode({[{}] = 1})",
            "-ERR user_script:1: Cannot serialise table: table key must be a number or string script: H, on @user_script:1.",
        ),
        (
            "return cjson.encode(function() end)",
            "-ERR user_script:1: Cannot serialise function: type not supported script: H, on @user_script:1.",
        ),
        ("return cjson.encode('a/\"\\\\\\n\\1é')", "$19 \"a\\/\\\"\\\\\\n\\u0001é\""),
        ("return cjson.encode({cjson.null, true, 1.25e10, 0.1})", "$27 [null,true,12500000000,0.1]"),
        ("return cjson.encode(cjson.decode('[1,[],\"\\\\u00e9\\\\ud83d\\\\ude00\",null]'))", "$20 [1,{},\"é😀\",null]"),
        (
            "return cjson.decode('[1,2')",
            "-ERR user_script:1: Expected comma or array end but found T_END at character 5 script: H, on @user_script:1.",
        ),
        ("return cjson.decode('{\"a\":1}').a", ":1"),
        ("return cjson.decode(' -1.5e2 ')", ":-150"),
        ("local ok, e = pcall(cjson.decode, ('['):rep(1001) .. (']'):rep(1001)) return ok", "$-1"),
        ("return #struct.pack('>I2h', '70000', 3)", ":4"),
        ("return {struct.unpack('>I2', 'abcd')}", "*2 :24930 :3"),
        (
            "return struct.pack('Q', 1)",
            "-ERR user_script:1: bad argument #1 to 'pack' (invalid format option 'Q') script: H, on @user_script:1.",
        ),
        (
            "return {struct.unpack('s', 'abc')}",
            "-ERR user_script:1: unfinished string in data script: H, on @user_script:1.",
        ),
        ("return {struct.unpack('<i3Bs', struct.pack('<i3Bs', -70000, 200, 'text'))}", "*4 :-70000 :200 $4 text :10"),
        ("return {struct.unpack('Bc0', '\\3abcd')}", "*2 $3 abc :5"),
        ("return struct.size('!4 b i4 c3')", ":11"),
        ("return bit.tohex(255, -4)", "$4 00FF"),
        ("return bit.band(1.5, 3)", ":2"),
        ("return bit.bxor(0xffffffff, 1)", ":-2"),
        (
            "return {bit.lshift(1, 31), bit.rshift(-1, 28), bit.arshift(-8, 1), bit.rol(0x12345678, 8), bit.bswap(1)}",
            "*5 :-2147483648 :15 :-4 :878082066 :16777216",
        ),
        (
            "return cmsgpack.pack()",
            "-ERR user_script:1: bad argument #0 to 'pack' (MessagePack pack needs input.) script: H, on @user_script:1.",
        ),
        ("return cmsgpack.unpack('')", "$-1"),
        (
            "return cmsgpack.unpack('\\193')",
            "-ERR user_script:1: Bad data format in input. script: H, on @user_script:1.",
        ),
        (
            "return cmsgpack.unpack('\\204')",
            "-ERR user_script:1: Missing bytes in input. script: H, on @user_script:1.",
        ),
        (
            "local t = cmsgpack.unpack(cmsgpack.pack({1, -5, 300, 1.5, 'a', {b = true}})) return {t[1], t[2], t[3], tostring(t[4]), t[5], tostring(t[6].b)}",
            "*6 :1 :-5 :300 $3 1.5 $1 a $4 true",
        ),
        ("return {cmsgpack.unpack_one(cmsgpack.pack(1, 2))}", "*2 :1 :1"),
        ("return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 2, 1)}", "*3 :-1 :2 :3"),
    ] {
        assert_eq!(runner.reply(text), reply, "{text}");
    }
}
