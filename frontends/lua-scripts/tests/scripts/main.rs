//! Scripts with a host that answers few commands. The expected replies are those of Redis 7.0.

mod libraries;
mod limits;

use std::cell::Cell;
use std::rc::Rc;

use lua_scripts::{Arguments, CallError, Host, Interpreter, Level, Outcome, Script, Stop, Watch};
use resp::{Protocol, Reply, Request};

/// Answers `echo`, `fail`, `shapes` and `stop`; refuses everything else.
#[derive(Default)]
struct Fake {
    call_count: usize,
    lines: Vec<(Level, Vec<u8>)>,
}

impl Host for Fake {
    fn call(&mut self, request: Request<'_>, protocol: Protocol, output: &mut Vec<u8>) -> Result<(), CallError> {
        self.call_count += 1;
        let mut reply = Reply::new(output, protocol);
        match request.name() {
            b"echo" => reply.bulk(request.argument(1)),
            b"fail" => reply.error(b"ERR value is not an integer or out of range"),
            b"stop" => return Err(CallError::Stopped(Stop::Abandoned)),
            b"shapes" => {
                reply.array(8);
                reply.simple("OK");
                reply.integer(-7);
                reply.null_bulk();
                reply.map(1);
                reply.bulk(b"k");
                reply.boolean(true);
                reply.set(1);
                reply.bulk(b"m");
                reply.double(0.5);
                reply.verbatim(b"text");
                reply.null_array();
            }
            _ => return Err(CallError::Refused(b"ERR Unknown Redis command called from script".into())),
        }
        Ok(())
    }

    fn is_permitted(&mut self, request: Request<'_>) -> Option<bool> {
        (request.name() != b"nosuch").then_some(request.len() > 1)
    }

    fn log(&mut self, level: Level, message: &[u8]) {
        self.lines.push((level, message.into()));
    }
}

/// Stops a script at the check with this number.
struct At(Cell<u32>, Stop);

impl Watch for At {
    fn check(&self) -> Option<Stop> {
        self.0.set(self.0.get().saturating_sub(1));
        (self.0.get() == 0).then_some(self.1)
    }
}

fn never() -> Rc<dyn Watch> {
    Rc::new(At(Cell::new(u32::MAX), Stop::Killed))
}

struct Runner {
    interpreter: Interpreter,
    host: Fake,
    protocol: Protocol,
}

impl Runner {
    fn new() -> Runner {
        Runner { interpreter: Interpreter::new().expect("memory"), host: Fake::default(), protocol: Protocol::Resp2 }
    }

    fn outcome(&mut self, text: &str, watch: Rc<dyn Watch>) -> (Outcome, Vec<u8>) {
        let script = Script::parse(text.as_bytes()).expect("a script");
        self.interpreter.compile(&script).unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut output = Vec::new();
        let mut reply = Reply::new(&mut output, self.protocol);
        let arguments = Arguments { keys: &[b"k1", b"k2"], values: &[b"v"] };
        let outcome = self.interpreter.run(&script.hash, arguments, &mut self.host, watch, (&mut reply, 1 << 20));
        (outcome, output)
    }

    /// Returns the reply, with ` ` instead of line ends and `H` instead of the script's hash.
    fn reply(&mut self, text: &str) -> String {
        let hash = Script::parse(text.as_bytes()).expect("a script").hash.to_string();
        let output = match self.outcome(text, never()) {
            (Outcome::Replied, output) => output,
            (Outcome::Failed(error), _) => [b"-", &error.text[..]].concat(),
            (stopped, _) => panic!("{text}: {stopped:?}"),
        };
        String::from_utf8_lossy(&output).replace("\r\n", " ").replace(&hash, "H").trim_end().to_owned()
    }
}

#[test]
fn results_become_replies() {
    let mut runner = Runner::new();
    for (text, reply) in [
        ("return 1.9", ":1"),
        ("return 1e300", ":-9223372036854775808"),
        ("return 'a'", "$1 a"),
        ("return true", ":1"),
        ("return false", "$-1"),
        ("return nil", "$-1"),
        ("return {1, 2, nil, 3}", "*2 :1 :2"),
        ("return {1, {'a', {}}}", "*2 :1 *2 $1 a *0"),
        ("return {ok = 'a\\r\\nb'}", "+a  b"),
        ("return {err = 'x y'}", "-x y"),
        ("return {KEYS[1], KEYS[2], ARGV[1], #KEYS, #ARGV}", "*5 $2 k1 $2 k2 $1 v :2 :1"),
        ("return function() end", "$-1"),
        ("return {double = 1.5}", "$3 1.5"),
        ("return {big_number = '123'}", "$3 123"),
        ("return {verbatim_string = {string = 'abc', format = 'txt'}}", "$3 abc"),
        ("return {map = {a = 1}}", "*2 $1 a :1"),
        ("return {set = {a = true}}", "*1 $1 a"),
        ("local t = {} t[1] = t return t", "-ERR reached lua stack limit"),
    ] {
        assert_eq!(runner.reply(text), reply, "{text}");
    }
    runner.protocol = Protocol::Resp3;
    for (text, reply) in [
        ("return false", "_"),
        ("return true", ":1"),
        ("redis.setresp(3) return true", "#t"),
        ("return {double = 1.5}", ",1.5"),
        ("return {map = {a = 1}}", "%1 $1 a :1"),
        ("return {set = {a = true}}", "~1 $1 a"),
        ("return {verbatim_string = {string = 'abc', format = 'mkd'}}", "=7 mkd:abc"),
    ] {
        assert_eq!(runner.reply(text), reply, "{text}");
    }
}

#[test]
fn replies_become_values() {
    let mut runner = Runner::new();
    let shapes = "local r = redis.call('shapes') local t = {} for i = 1, 8 do t[i] = cjson.encode(r[i]) end return t";
    assert_eq!(
        runner.reply(shapes),
        r#"*8 $11 {"ok":"OK"} $2 -7 $5 false $7 ["k",1] $5 ["m"] $5 "0.5" $6 "text" $5 false"#
    );
    assert_eq!(
        runner.reply(&format!("redis.setresp(3) {shapes}")),
        "*8 $11 {\"ok\":\"OK\"} $2 -7 $4 null $18 {\"map\":{\"k\":true}} $18 {\"set\":{\"m\":true}} $14 {\"double\":0.5} \
         $52 {\"verbatim_string\":{\"format\":\"txt\",\"string\":\"text\"}} $4 null"
            .replace("{\"format\":\"txt\",\"string\":\"text\"}", verbatim(&mut runner))
    );
    assert_eq!(runner.reply("return redis.call('echo', 1.5)"), "$3 1.5");
    assert_eq!(runner.reply("return redis.call('echo', 1e20)"), "$5 1e+20");
    assert_eq!(runner.reply("return redis.call('echo', 'a\\0b')"), "$3 a\0b");
}

/// The order of the fields of a table is Lua's.
fn verbatim(runner: &mut Runner) -> &'static str {
    let text = "return cjson.encode({format = 'txt', string = 'text'})";
    match runner.reply(text).starts_with("$32 {\"format\"") {
        true => "{\"format\":\"txt\",\"string\":\"text\"}",
        false => "{\"string\":\"text\",\"format\":\"txt\"}",
    }
}

#[test]
fn errors_have_text_and_place() {
    let mut runner = Runner::new();
    let not_a_number = "ERR value is not an integer or out of range";
    for (text, reply) in [
        ("error('foo')", "-ERR user_script:1: foo script: H, on @user_script:1."),
        ("\n\nerror('foo')", "-ERR user_script:3: foo script: H, on @user_script:3."),
        ("error({err = 'E foo'})", "-E foo script: H, on @user_script:1."),
        ("error({})", "-ERR unknown error script: H, on @user_script:1."),
        ("error()", "-ERR nil script: H, on @user_script:1."),
        ("error(12)", "-ERR user_script:1: 12 script: H, on @user_script:1."),
        ("return redis.call('nosuch')", "-ERR Unknown Redis command called from script script: H, on @user_script:1."),
        ("return redis.pcall('nosuch')", "-ERR Unknown Redis command called from script"),
        ("return redis.call('fail')", &format!("-{not_a_number} script: H, on @user_script:1.")),
        ("return redis.pcall('fail')", &format!("-{not_a_number}")),
        ("return redis.pcall('fail').err", "$43 ERR value is not an integer or out of range"),
        ("return select(2, pcall(redis.call, 'fail'))", "$43 ERR value is not an integer or out of range"),
        ("return {pcall(error, {err = 'x'})}", "*2 $-1 $1 x"),
        ("return select(2, pcall(error, 'x', 0))", "$1 x"),
        ("return select(2, pcall(bit.band, 'x'))", "$52 bad argument #1 to '?' (number expected, got string)"),
        (
            "return redis.call()",
            "-ERR Please specify at least one argument for this redis lib call script: H, on @user_script:1.",
        ),
        (
            "redis.call({})",
            "-ERR Lua redis lib command arguments must be strings or integers script: H, on @user_script:1.",
        ),
        ("return redis.error_reply('x y')", "-x y"),
        ("return redis.error_reply('x')", "-ERR x"),
        ("return redis.error_reply('-x y')", "-x y"),
        ("return redis.error_reply()", "-ERR wrong number or type of arguments"),
        ("return redis.status_reply(1)", "-ERR wrong number or type of arguments"),
        ("return redis.status_reply('fine')", "+fine"),
        ("return redis.sha1hex()", "-ERR wrong number of arguments script: H, on @user_script:1."),
        ("return redis.sha1hex(1)", "$40 356a192b7913b04c54574d18c28d46e6395428ab"),
        ("redis.setresp(4)", "-ERR RESP version must be 2 or 3. script: H, on @user_script:1."),
        ("redis.log(9, 'b')", "-ERR Invalid debug level. script: H, on @user_script:1."),
        ("redis.log('a', 'b')", "-ERR First argument must be a number (log level). script: H, on @user_script:1."),
        ("return redis.acl_check_cmd('get', 'k')", ":1"),
        (
            "return redis.acl_check_cmd('nosuch')",
            "-ERR Invalid command passed to redis.acl_check_cmd() script: H, on @user_script:1.",
        ),
        (
            "local function f() return f() + 1 end return f()",
            "-ERR user_script:1: stack overflow script: H, on @user_script:1.",
        ),
        ("return xpcall(function() redis.call('fail') end, function(e) return e.err end)", "$-1"),
    ] {
        assert_eq!(runner.reply(text), reply, "{text}");
    }
    let script = Script::parse(b"return x(").expect("a script");
    let error = "Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'";
    assert_eq!(runner.interpreter.compile(&script), Err(error.into()));
    runner.reply("redis.log(redis.LOG_WARNING, 'a', 1)");
    assert_eq!(runner.host.lines, [(Level::Warning, b"a 1".to_vec())]);
}

/// Each attempt fails, and nothing of it is left for the next script.
#[test]
fn scripts_cannot_leave_anything_behind() {
    let mut runner = Runner::new();
    let readonly = "Attempt to modify a readonly table";
    for text in [
        "a = 10",
        "_G = {}",
        "_G.a = 1",
        "redis.call = 1",
        "redis = 1",
        "string.rep = 1",
        "setmetatable(_G, {})",
        "rawset(_G, 'a', 1)",
        "rawset(redis, 'a', 1)",
        "setmetatable(redis, {})",
        "getmetatable(_G).__index = 1",
        "getmetatable('').__index = 1",
        "getmetatable('').__index.len = 1",
        "table.insert(_G, 1)",
        "table.insert(redis, 1)",
        "table.sort(_G)",
        "table.remove(KEYS) table.remove(redis)",
        "KEYS = {}",
        "setmetatable(getmetatable(''), {})",
        "loadstring('b = 1')()",
        "coroutine.wrap(function() c = 1 end)()",
        "for k, v in pairs(_G) do _G[k] = nil end",
    ] {
        let reply = runner.reply(text);
        assert!(reply.contains(readonly), "{text}: {reply}");
    }
    for text in
        ["return a", "return os", "return io", "return getfenv", "return print", "return require", "return debug"]
    {
        let reply = runner.reply(text);
        assert!(reply.contains("Script attempted to access nonexistent global variable"), "{text}: {reply}");
    }
    for (text, reply) in [
        (
            "return {pcall(setfenv, 1, {})}",
            "-ERR user_script:1: Script attempted to access nonexistent global variable 'setfenv' script: H, on @user_script:1.",
        ),
        ("return select(2, loadstring('\\27Lua'))", "$24 bytecode is not accepted"),
        (
            "local n = 0 return select(2, load(function() n = n + 1 if n == 1 then return '\\27Lua' end end))",
            "$24 bytecode is not accepted",
        ),
        ("return loadstring('return 1')()", ":1"),
        ("return getmetatable(redis)", "$-1"),
        ("return type(_G.redis.call)", "$8 function"),
        ("return next({})", "$-1"),
        ("local n = 0 for k in pairs(_G) do n = n + 1 end return n > 20", ":1"),
        ("local n = 0 for k in pairs(redis) do n = n + 1 end return n > 10", ":1"),
        ("cjson.encode_max_depth(1) return 1", ":1"),
        ("return cjson.encode({{{}}})", "$6 [[{}]]"),
        ("redis.setresp(3) return 1", ":1"),
        ("return redis.call('shapes')[3] == false", ":1"),
    ] {
        assert_eq!(runner.reply(text), reply, "{text}");
    }
}

/// The numbers of a seed are Redis'. Its choice ends with the script.
#[test]
fn random_numbers_depend_on_the_seed_alone() {
    let mut runner = Runner::new();
    let text = "math.randomseed(7) return {math.random(1000), tostring(math.random())}";
    assert_eq!(runner.reply(text), "*2 :267 $16 0.68203523041775");
    let free: Vec<String> = (0..3).map(|_| runner.reply("return tostring(math.random())")).collect();
    assert!(free[0] != free[1] && free[1] != free[2] && !free[0].contains("0.68203523041775"), "{free:?}");
    assert_eq!(runner.reply(text), "*2 :267 $16 0.68203523041775");
}

#[test]
fn stopped_script_cannot_continue() {
    let mut runner = Runner::new();
    let endless = [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do pcall(function() while true do pcall(error) end end) end",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "while true do coroutine.wrap(function() while true do end end)() end",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "local function f() pcall(f) return f() end f()",
        "repeat until false",
    ];
    for stop in [Stop::Killed, Stop::Abandoned] {
        for text in endless {
            let (outcome, output) = runner.outcome(text, Rc::new(At(Cell::new(3), stop)));
            assert!(matches!(&outcome, Outcome::Stopped(found, _) if *found == stop), "{text}: {outcome:?}");
            assert!(output.is_empty());
            assert_eq!(runner.reply("local n = 0 for i = 1, 100000 do n = n + i end return n"), ":5000050000");
        }
    }
    for text in ["redis.call('stop')", "pcall(redis.call, 'stop') return 1", "redis.pcall('stop') while true do end"] {
        let (outcome, _) = runner.outcome(text, never());
        assert!(matches!(outcome, Outcome::Stopped(Stop::Abandoned, _)), "{text}: {outcome:?}");
    }
}

#[test]
fn memory_of_script_is_bounded() {
    let mut runner = Runner::new();
    for text in [
        "local s = 'x' while true do s = s .. s end",
        "local t = {} while true do t[#t + 1] = {} end",
        "return string.rep('x', 2000000000)",
        "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e6) .. i end",
    ] {
        let reply = runner.reply(text);
        assert!(reply.starts_with("-ERR ") && reply.contains("not enough memory"), "{text}: {reply}");
        assert_eq!(runner.reply("return 1"), ":1");
    }
    let used_bytes = runner.interpreter.used_bytes();
    assert!(used_bytes < 4 << 20, "{used_bytes} bytes are kept");
    let long = runner.reply("local t = {} t[1] = ('x'):rep(100000) for i = 1, 20 do t = {t, t} end return t");
    assert_eq!(long, "-ERR the script's reply exceeds the maximum size of a reply");
}
