# mend_hostname NAME PATH: takes NAME and NAME.anything off the lines for 127.0.1.1; a line left without names goes.
mend_hostname() {
    take "$2"
    put "$2" '' '' '' hostname_new "$1" "$taken"
}
hostname_new() {
    NAME=$1 awk '
        $1 != "127.0.1.1" { print; next }
        {
            text = $0; comment = ""
            sub(/\r$/, "", text)
            at = index(text, "#")
            if (at) { comment = " " substr(text, at); text = substr(text, 1, at - 1) }
            count = split(text, word); kept = ""
            for (i = 2; i <= count; i++)
                if (word[i] != ENVIRON["NAME"] && index(word[i], ENVIRON["NAME"] ".") != 1) kept = kept " " word[i]
            if (kept != "") print word[1] kept comment
        }' "$2"
}
