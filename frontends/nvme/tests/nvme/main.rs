//! The codec: encoded data is decoded again, however it is split; any bytes are decoded or refused.

mod commands;
mod dhchap;
mod pages;
mod pdus;
