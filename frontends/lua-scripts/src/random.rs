//! `math.random` and `math.randomseed`, with the numbers of Redis for each seed.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use mlua::{Lua, MultiValue, Table};

use crate::arguments::Args;

/// The 48-bit linear congruential generator of `lrand48`.
const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const SEED_LOW: u64 = 0x330E;
const STATE_MASK: u64 = (1 << 48) - 1;
const NUMBER_MAX: u64 = i32::MAX as u64;

/// The generator of an interpreter.
pub(crate) struct Random {
    state: Cell<u64>,
    /// The state before the script, if the script has chosen another.
    before: Cell<Option<u64>>,
}

impl Default for Random {
    fn default() -> Random {
        Random { state: Cell::new(RandomState::new().hash_one(()) & STATE_MASK), before: Cell::new(None) }
    }
}

impl Random {
    /// Begins a script: undoes the choice of the previous one.
    pub(crate) fn begin(&self) {
        if let Some(before) = self.before.take() {
            self.state.set(before);
        }
    }

    fn seed(&self, seed: i32) {
        if self.before.get().is_none() {
            self.next();
            self.before.set(Some(self.state.get()));
        }
        self.state.set(u64::from(seed as u32) << 16 | SEED_LOW);
    }

    /// Returns a number from 0 to 1, without 1.
    fn next(&self) -> f64 {
        let state = self.state.get().wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & STATE_MASK;
        self.state.set(state);
        ((state >> 17) % NUMBER_MAX) as f64 / NUMBER_MAX as f64
    }
}

/// Replaces the functions of `math`.
pub(crate) fn add(lua: &Lua, math: &Table, random: &Rc<Random>) -> mlua::Result<()> {
    let shared = Rc::clone(random);
    let draw = move |lua: &Lua, values: MultiValue| {
        let args = Args { lua, function: "random", values };
        let next = shared.next();
        let (low, high, last) = match args.values.len() {
            0 => return Ok(next),
            1 => (1.0, args.number(0)?.trunc(), 0),
            2 => (args.number(0)?.trunc(), args.number(1)?.trunc(), 1),
            _ => return Err(crate::errors::at_place(lua, "wrong number of arguments")),
        };
        if low > high {
            return Err(args.bad(last, "interval is empty"));
        }
        Ok((next * (high - low + 1.0)).floor() + low)
    };
    math.set("random", lua.create_function(draw)?)?;
    let shared = Rc::clone(random);
    let seed = move |lua: &Lua, values: MultiValue| {
        let args = Args { lua, function: "randomseed", values };
        shared.seed(args.number(0)? as i64 as i32);
        Ok(())
    };
    math.set("randomseed", lua.create_function(seed)?)
}
