//! `math.random` and `math.randomseed`, with the same numbers in each run of a script, as in Redis.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Lua, MultiValue, Table};

use crate::arguments::Args;

/// The 48-bit linear congruential generator of `lrand48`.
const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const SEED_LOW: u64 = 0x330E;
const STATE_MASK: u64 = (1 << 48) - 1;
const NUMBER_MAX: u64 = i32::MAX as u64;

/// The generator's state.
#[derive(Default)]
pub(crate) struct Random(Cell<u64>);

impl Random {
    pub(crate) fn seed(&self, seed: i32) {
        self.0.set(u64::from(seed as u32) << 16 | SEED_LOW);
    }

    /// Returns a number from 0 to 1, without 1.
    fn next(&self) -> f64 {
        let state = self.0.get().wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & STATE_MASK;
        self.0.set(state);
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
