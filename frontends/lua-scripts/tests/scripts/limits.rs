//! Scripts that ask for much, and attempts to leave the sandbox.

use std::cell::Cell;
use std::rc::Rc;

use lua_scripts::{Outcome, Stop};

use super::{At, Runner};

#[test]
fn long_results_are_whole() {
    let mut runner = Runner::new();
    for (text, start, count) in [
        ("local t = {} for i = 1, 20000 do t[i] = 'x' .. i end return t", "*20000 ", 20_000),
        ("local t = {} for i = 1, 20000 do t['x' .. i] = 'y' .. i end return {map = t}", "*40000 ", 40_000),
        ("local t = {} for i = 1, 20000 do t['x' .. i] = true end return {set = t}", "*20000 ", 20_000),
    ] {
        let reply = runner.reply(text);
        assert!(reply.starts_with(start), "{text}: {}", &reply[..20]);
        assert_eq!(reply.matches('$').count(), count, "{text}");
    }
}

#[test]
fn many_scripts_are_compiled() {
    let mut runner = Runner::new();
    for number in 0..12_000 {
        assert_eq!(runner.reply(&format!("return {number}")), format!(":{number}"));
    }
    let long = "local t = {} for i = 1, 7000 do t[i] = 'x' .. i end return redis.call('echo', unpack(t))";
    assert_eq!(runner.reply(long), "$2 x1");
}

/// A text that is part of a table many times, or is an argument many times, makes an output of any length.
#[test]
fn output_of_library_functions_is_bounded() {
    let mut runner = Runner::new();
    let texts = "local s = ('x'):rep(5e7) local t = {} for i = 1, 24 do t[i] = s end";
    assert_eq!(runner.reply(&format!("{texts} return #t[24]")), ":50000000");
    for (call, error) in [
        ("cjson.encode(t)", "not enough memory"),
        ("cjson.encode({[s] = t})", "not enough memory"),
        ("cmsgpack.pack(t)", "not enough memory"),
        ("struct.pack(('s'):rep(24), unpack(t))", "not enough memory"),
        ("redis.log(redis.LOG_NOTICE, unpack(t))", "not enough memory"),
        ("redis.call('echo', unpack(t))", "the arguments of the command exceed the maximum size of a request"),
        ("cmsgpack.unpack(('\\1'):rep(1e6))", "too many results"),
        ("struct.unpack(('b'):rep(1e6), s)", "too many results"),
    ] {
        let reply = runner.reply(&format!("{texts} return {call}"));
        assert!(reply.starts_with("-ERR ") && reply.contains(error), "{call}: {reply}");
    }
    assert_eq!(runner.reply("return 1"), ":1");
}

#[test]
fn deep_values_are_refused_or_whole() {
    let mut runner = Runner::new();
    let deep = "local t = 1 for i = 1, n do t = {k = t} end";
    for (text, part) in [
        (format!("local n = 990 {deep} return #cjson.encode(t)"), ":5941"),
        (format!("local n = 1e5 {deep} return cjson.encode(t)"), "excessive nesting"),
        (format!("cjson.encode_max_depth(1e6) local n = 1990 {deep} return cjson.encode(t)"), "excessive nesting"),
        (format!("cjson.encode_max_depth(1e6) local n = 1e5 {deep} return cjson.encode(t)"), "excessive nesting"),
        ("cjson.decode_max_depth(1e6) return cjson.decode(('['):rep(1e6))".into(), "too many nested data structures"),
        ("return cmsgpack.unpack(('\\145'):rep(1e6))".into(), "Bad data format in input"),
        ("local t = {} for i = 1, 1e5 do t = {map = {a = t}} end return t".into(), "reached lua stack limit"),
        ("return #{loadstring(('('):rep(1e5))}".into(), ":2"),
        ("local function f() return (('x'):gsub('x', f)) end return f()".into(), "C stack overflow"),
        ("local function f() return pcall(f) end return f()".into(), ":"),
    ] {
        let reply = runner.reply(&text);
        assert!(reply.contains(part), "{text}: {reply}");
    }
}

#[test]
fn sandbox_has_no_way_out() {
    let mut runner = Runner::new();
    for (text, part) in [
        ("return select(2, loadstring(string.dump(function() return 1 end)))", "bytecode is not accepted"),
        ("return coroutine.yield()", "attempt to yield"),
        ("return string.dump(redis.call)", "unable to dump"),
        ("return rawget(string, '__index') == nil and rawget(_G, '__index') == nil", ":1"),
        ("return rawequal(getmetatable('').__index, string)", ":1"),
        ("getmetatable('').__index.rep = 1", "Attempt to modify a readonly table"),
        (
            "for _, library in pairs({string, table, math, coroutine, bit, cjson, cmsgpack, struct, redis}) do \
          if getmetatable(library) ~= nil or pcall(rawset, library, 'a', 1) then return 0 end end return 1",
            ":1",
        ),
        ("local m = getmetatable(_G) return type(m.__newindex)", "$3 nil"),
        ("return type(newproxy)", "nonexistent global variable 'newproxy'"),
        ("return type(package)", "nonexistent global variable 'package'"),
        ("error(setmetatable({}, {__tostring = function() error('x') end}))", "unknown error"),
        ("error(function() end)", "-ERR function"),
        ("return tostring(setmetatable({}, {__tostring = function() return {} end}))", "*0"),
        ("return setmetatable({}, {__index = function() return 1 end})", "*0"),
        ("return xpcall(error, error)", "$-1"),
        ("collectgarbage('stop') return collectgarbage('setpause', 1)", ":0"),
        ("return loadstring('return _G == ...')(_G)", ":1"),
        ("return coroutine.wrap(function() return pcall(loadstring('a = 1')) end)()", "$-1"),
        (
            "local ok, e = coroutine.resume(coroutine.create(function() redis.call('fail') end)) return e.err",
            "$43 ERR value",
        ),
    ] {
        let reply = runner.reply(text);
        assert!(reply.contains(part), "{text}: {reply}");
    }
}

/// The coroutine in which a script is stopped has another hook than the rest of the script.
#[test]
fn script_stopped_in_coroutine_cannot_continue() {
    let mut runner = Runner::new();
    for text in [
        "pcall(coroutine.wrap(function() while true do end end)) local function f() pcall(f) return f() end f()",
        "local function f() pcall(f) return f() end \
         local other = coroutine.create(f) coroutine.resume(coroutine.create(function() while true do end end)) \
         coroutine.resume(other)",
        "pcall(coroutine.wrap(function() while true do end end)) redis.call('echo', 'x')",
    ] {
        let (outcome, _) = runner.outcome(text, Rc::new(At(Cell::new(3), Stop::Killed)));
        assert!(matches!(outcome, Outcome::Stopped(Stop::Killed, _)), "{text}: {outcome:?}");
        assert_eq!(runner.host.call_count, 0);
        assert_eq!(runner.reply("local n = 0 for i = 1, 100000 do n = n + i end return n"), ":5000050000");
    }
}
