use super::category;
use super::command::{Action, Command, ReadShape};
use super::cost::Cost::{Bytes, Moment, Product, Values, ValuesIf};
use super::flag::{DENYOOM, FAST, READONLY, WRITE};
use super::needs::Needs::{Any, Batches, Conditions, Expiry};
use super::policy::Hides::Open;
use super::policy::When::Usual;
use super::policy::policy;
use super::touches::{Access, Touches, key, keys, keys_and_values};
use crate::telemetry::Kind;

pub(super) static ROWS: &[Command] = &[
    Command::new("append", 3, WRITE | DENYOOM | FAST, policy(Kind::Update, key(Access::Extend), Open, Usual, Values, Conditions), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "2.0.0", "Append a value to a key", "O(1). The amortized time complexity is O(1) assuming the appended value is small and the already present value is of any size, since the dynamic string library used by Redis will double the free space available on every reallocation."),
    Command::new("decr", 2, WRITE | DENYOOM | FAST, policy(Kind::Update, key(Access::ReadAndUpdate), Open, Usual, Moment, Conditions), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "1.0.0", "Decrement the integer value of a key by one", "O(1)"),
    Command::new("decrby", 3, WRITE | DENYOOM | FAST, policy(Kind::Update, key(Access::ReadAndUpdate), Open, Usual, Moment, Conditions), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "1.0.0", "Decrement the integer value of a key by the given number", "O(1)"),
    Command::new("get", 2, READONLY | FAST, policy(Kind::Get, key(Access::Read), Open, Usual, Values, Any), Action::Read(ReadShape::Value))
        .in_categories(category::STRING)
        .documented("string", "1.0.0", "Get the value of a key", "O(1)"),
    Command::new("getdel", 2, WRITE | FAST, policy(Kind::Update, key(Access::ReadAndDelete), Open, Usual, Values, Conditions), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "6.2.0", "Get the value of a key and delete the key", "O(1)"),
    Command::new("getex", -2, WRITE | FAST, policy(Kind::Update, key(Access::ReadAndUpdate), Open, Usual, Values, Any), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "6.2.0", "Get the value of a key and optionally set its expiration", "O(1)"),
    Command::new("getrange", 4, READONLY, policy(Kind::Read, key(Access::Read), Open, Usual, Values, Any), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "2.4.0", "Get a substring of the string stored at a key", "O(N) where N is the length of the returned string. The complexity is ultimately determined by the returned length, but because creating a substring from an existing string is very cheap, it can be considered O(1) for small strings."),
    Command::new("getset", 3, WRITE | DENYOOM | FAST, policy(Kind::Update, key(Access::ReadAndUpdate), Open, Usual, Values, Conditions), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "1.0.0", "Set the string value of a key and return its old value", "O(1)"),
    Command::new("incr", 2, WRITE | DENYOOM | FAST, policy(Kind::Update, key(Access::ReadAndUpdate), Open, Usual, Moment, Conditions), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "1.0.0", "Increment the integer value of a key by one", "O(1)"),
    Command::new("incrby", 3, WRITE | DENYOOM | FAST, policy(Kind::Update, key(Access::ReadAndUpdate), Open, Usual, Moment, Conditions), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "1.0.0", "Increment the integer value of a key by the given amount", "O(1)"),
    Command::new("incrbyfloat", 3, WRITE | DENYOOM | FAST, policy(Kind::Update, key(Access::ReadAndUpdate), Open, Usual, Moment, Conditions), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "2.6.0", "Increment the float value of a key by the given amount", "O(1)"),
    Command::new("lcs", -3, READONLY, policy(Kind::Read, Touches::LCS, Open, Usual, Product, Any), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "7.0.0", "Find longest common substring", "O(N*M) where N and M are the lengths of s1 and s2, respectively"),
    Command::new("mget", -2, READONLY | FAST, policy(Kind::Get, keys(Access::Read), Open, Usual, Values, Any), Action::Read(ReadShape::Array))
        .in_categories(category::STRING)
        .documented("string", "1.0.0", "Get the values of all the given keys", "O(N) where N is the number of keys to retrieve."),
    Command::new("mset", -3, WRITE | DENYOOM, policy(Kind::Set, keys_and_values(Access::Overwrite), Open, Usual, Moment, Batches), Action::Apply)
        .in_categories(category::STRING)
        .alone()
        .documented("string", "1.0.1", "Set multiple keys to multiple values", "O(N) where N is the number of keys to set."),
    Command::new("msetnx", -3, WRITE | DENYOOM, policy(Kind::Set, keys_and_values(Access::Create), Open, Usual, Moment, Batches), Action::Apply)
        .in_categories(category::STRING)
        .alone()
        .documented("string", "1.0.1", "Set multiple keys to multiple values, only if none of the keys exist", "O(N) where N is the number of keys to set."),
    Command::new("psetex", 4, WRITE | DENYOOM, policy(Kind::Set, key(Access::Overwrite), Open, Usual, Moment, Expiry), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "2.6.0", "Set the value and expiration in milliseconds of a key", "O(1)"),
    Command::new("set", -3, WRITE | DENYOOM, policy(Kind::Set, Touches::SET, Open, Usual, ValuesIf("get"), Any), Action::Put)
        .in_categories(category::STRING)
        .documented("string", "1.0.0", "Set the string value of a key; DURABLE power|buffered|process selects the durability of this write", "O(1)"),
    Command::new("setex", 4, WRITE | DENYOOM, policy(Kind::Set, key(Access::Overwrite), Open, Usual, Moment, Expiry), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "2.0.0", "Set the value and expiration of a key", "O(1)"),
    Command::new("setnx", 3, WRITE | DENYOOM | FAST, policy(Kind::Set, key(Access::Create), Open, Usual, Moment, Conditions), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "1.0.0", "Set the value of a key, only if the key does not exist", "O(1)"),
    Command::new("setrange", 4, WRITE | DENYOOM, policy(Kind::Update, key(Access::Update), Open, Usual, Bytes(2), Conditions), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "2.2.0", "Overwrite part of a string at key starting at the specified offset", "O(1), not counting the time taken to copy the new string in place. Usually, this string is very small so the amortized complexity is O(1). Otherwise, complexity is O(M) with M being the length of the value argument."),
    Command::new("strlen", 2, READONLY | FAST, policy(Kind::Read, key(Access::Inspect), Open, Usual, Moment, Any), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "2.2.0", "Get the length of the value stored in a key", "O(1)"),
    Command::new("substr", 4, READONLY, policy(Kind::Read, key(Access::Read), Open, Usual, Values, Any), Action::Apply)
        .in_categories(category::STRING)
        .documented("string", "1.0.0", "Get a substring of the string stored at a key", "O(N) where N is the length of the returned string. The complexity is ultimately determined by the returned length, but because creating a substring from an existing string is very cheap, it can be considered O(1) for small strings."),
];
