mend_command() { command_as "$1" "$2"; }
