# see_sshkey (USER NAME)...: the public key of a user, `absent`, or `no user`. The private key is never read.
see_sshkey() {
    while [ $# -gt 0 ]; do
        if passwd_entry "$1"; then
            sshkey_home=${entry%:*} sshkey_home=${sshkey_home##*:}
            if [ -f "$sshkey_home/.ssh/$2" ] && [ -f "$sshkey_home/.ssh/$2.pub" ]; then
                if read -r sshkey_type sshkey_text _ <"$sshkey_home/.ssh/$2.pub"; then :; fi
                # A link of the user's may lead anywhere: only what looks like a public key is said.
                case $sshkey_type in
                ssh-* | ecdsa-* | sk-*) ;;
                *) sshkey_type=no sshkey_text=key ;;
                esac
                say sshkey "$1" && printf '%s %s\n' "$sshkey_type" "$sshkey_text"
            elif [ -d "$sshkey_home/.ssh" ] && [ ! -x "$sshkey_home/.ssh" ]; then
                :
            else
                say sshkey "$1" && echo absent
            fi
        elif [ "$?" = 2 ]; then
            say sshkey "$1" && echo 'no user'
        fi
        shift 2
    done
}
