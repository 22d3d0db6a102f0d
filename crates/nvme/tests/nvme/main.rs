//! The codec: what is written is read, however it is cut; and any bytes are read or refused.

mod commands;
mod dhchap;
mod pages;
mod pdus;
