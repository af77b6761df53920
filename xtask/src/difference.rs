//! The first difference between two texts.

/// The first line that differs: its number, from 1, and its text in each.
pub fn first_difference(one: &str, other: &str) -> Option<(usize, String, String)> {
    if one == other {
        return None;
    }
    let same = one.lines().zip(other.lines()).take_while(|(a, b)| a == b).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(the end)").trim().to_owned();
    Some((same + 1, line(one), line(other)))
}
