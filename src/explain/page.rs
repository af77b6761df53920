//! The stages side by side as a self-contained HTML page.

use std::fmt::{self, Display, Formatter, Write};

use super::side_by_side::{Column, Line, Panel, SideBySide};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The number of colours; adjacent ones are far apart on the colour wheel.
const COLOURS: u32 = 12;

impl SideBySide {
    /// A page with the stages in columns, for any browser. Lines that correspond have the same colour. Hover over a
    /// line or focus it with the keyboard to highlight its counterparts; click or press Enter to pin the highlight.
    ///
    /// The page is a single file and loads nothing. It follows the browser's colour scheme, light or dark.
    pub fn to_html(&self) -> String {
        let mut html = String::new();
        // writing to a String doesn't fail
        let _ = write!(html, "{}", Page(self));
        html
    }
}

struct Page<'a>(&'a SideBySide);

impl Display for Page<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let SideBySide { function, backend, opt_level, columns } = self.0;
        let function = Escaped(function);
        write!(
            f,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
             <title>{function} – tvm-ffi-codegen</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <header>\n<h1>{function}</h1>\n\
             <p>{backend}, --opt-level {opt_level}. Lines of one colour, and of one number, belong to the same line of \
             the IR.</p>\n\
             <p class=\"keys\">Click or <kbd>Enter</kbd> keeps a line, <kbd>Esc</kbd> lets it go, \
             <kbd>←</kbd> <kbd>→</kbd> go to its counterparts.</p>\n</header>\n<main>\n"
        )?;
        for column in columns {
            write!(f, "{}", ColumnAsHtml(column))?;
        }
        write!(f, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n")
    }
}

struct ColumnAsHtml<'a>(&'a Column);

impl Display for ColumnAsHtml<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Column { stage, panels } = self.0;
        writeln!(f, "<section class=\"column\" data-stage=\"{stage}\">")?;
        for Panel { heading, lines } in panels {
            let heading = Escaped(heading);
            write!(
                f,
                "<h2>{heading}</h2>\n<ol role=\"listbox\" aria-label=\"{heading}\" aria-multiselectable=\"true\">\n"
            )?;
            for line in lines {
                write!(f, "{}", LineAsHtml(line))?;
            }
            f.write_str("</ol>\n")?;
        }
        f.write_str("</section>\n")
    }
}

struct LineAsHtml<'a>(&'a Line);

impl Display for LineAsHtml<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Line { text, ir_lines } = self.0;
        let text = Escaped(text);
        let mut numbers = ir_lines.iter();
        let Some(first) = numbers.next() else { return writeln!(f, "<li role=\"presentation\">{text}</li>") };
        write!(f, "<li role=\"option\" aria-selected=\"false\" tabindex=\"-1\" data-ir=\"{first}")?;
        numbers.try_for_each(|number| write!(f, " {number}"))?;
        // a line for several IR lines isn't coloured
        match ir_lines.len() {
            1 => writeln!(f, "\" data-n=\"{first}\" class=\"c{}\">{text}</li>", first % COLOURS),
            _ => writeln!(f, "\">{text}</li>"),
        }
    }
}

/// A string escaped for HTML, also inside quotes.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // HTML forbids control characters
                c if c.is_control() && c != '\t' => f.write_char(char::REPLACEMENT_CHARACTER)?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
