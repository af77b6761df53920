//! Where two texts differ.

/// The first line that is not the same in both: its number, from 1, and what each has there.
pub fn first_difference(one: &str, other: &str) -> Option<(usize, String, String)> {
    if one == other {
        return None;
    }
    let same = one.lines().zip(other.lines()).take_while(|(a, b)| a == b).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(the end)").trim().to_owned();
    Some((same + 1, line(one), line(other)))
}
