# Functions above 60 lines and headers above 250, in files as clang-format writes them: those whose comment gives a reason,
# "(long: ...)", may be.
FNR == 1 {
  if (file != "" && lines > 250 && file ~ /^include/ && !excused) { print file ": a header of " lines " lines, at most 250"; bad = 1 }
  n = 0; file = FILENAME; excused = 0; reason = -9
}
{ lines = FNR }
/\(long: / { reason = FNR; if (FNR < 12) excused = 1 }
{
  match($0, /^ */); indent = RLENGTH
  if (n > 0 && indent <= at[n] && $0 ~ /^ *}/) {
    size = FNR - begin[n] + 1
    if (is_function[n] && size > 60 && !excuse[n]) { print FILENAME ":" begin[n] ": a function of " size " lines, at most 60"; bad = 1 }
    n--
  }
  if ($0 ~ /\{$/ && (indent == 0 || indent == 2)) {
    n++; at[n] = indent; begin[n] = FNR; excuse[n] = FNR - reason < 5
    is_function[n] = $0 !~ /^ *(namespace|struct|class|enum|union|extern)/ && $0 ~ /\)( const)?( noexcept)?( override)?( ->.*)? \{$/
  }
}
END { exit bad }
