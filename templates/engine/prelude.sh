export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME="${HOME:-/root}"
unset CDPATH ENV BASH_ENV IFS
umask 077
cd /
