//! Faults that tools of this kind are known to have, each as a test of this one. The number before each is its row in
//! the list that the tests were made from: right answers both ways, who reaches and who does not.

mod grants;
mod matching;
mod reading;
mod reports;
mod subjects;
