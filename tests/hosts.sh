# SPDX-License-Identifier: Apache-2.0
#
# hosts.sh: read by suites that want several hosts.  Each is a process that sleeps in a network, a name and a mount namespace of
# its own.  Host 0 is the switch.  Links lead from it to all others, whose addresses exist in these namespaces alone; nothing
# leaves them.  They end with the suite, or after an hour.

hosts=0
net=10.77.0

# hosts_open N: host1 .. hostN; false, and why in $tmp/said, where this is not allowed
hosts_open() {
    unshare -n -u -m true 2>"$tmp/said" && command -v ip >/dev/null || return 1
    trap 'hosts_close; rm -rf "$tmp"' EXIT
    hosts=$1
    echo "127.0.0.1 localhost" >"$tmp/hosts"
    for i in $(seq 0 "$hosts"); do
        unshare -n -u -m --propagation private sh -c 'echo $$ >"$1"; exec sleep 3600' sh "$tmp/host.$i" &
        until [ -s "$tmp/host.$i" ]; do sleep 0.05; done
        echo "$net.$((10 + i)) host$i" >>"$tmp/hosts"
    done
    on 0 sh -c 'ip link set lo up && ip link add switch type bridge && ip link set switch up' 2>"$tmp/said" || return 1
    for i in $(seq "$hosts"); do
        {   on 0 ip link add "to$i" type veth peer name eth0 netns "$(cat "$tmp/host.$i")" &&
            on 0 ip link set "to$i" master switch up &&
            on $i sh -c 'hostname "$1"; mount --bind "$2" /etc/hosts; ip link set lo up; ip link set eth0 up
                ip address add "$3/24" dev eth0' sh "host$i" "$tmp/hosts" "$net.$((10 + i))"
        } 2>"$tmp/said" || return 1
    done
}
# on NUMBER COMMAND...: there; a mount namespace has its own working directory
on() { (number=$1; shift; exec nsenter -t "$(cat "$tmp/host.$number")" -n -u -m --wd="$PWD" "$@"); }
# cut_link NUMBER, heal_link NUMBER: its link to all others
cut_link() { on 0 ip link set "to$1" down; }
heal_link() { on 0 ip link set "to$1" up; }
# lose NUMBER PERCENT: so many of the packets that reach it are lost
lose() {
    on "$1" nft "add table ip loss; add chain ip loss in { type filter hook input priority 0 ; }
        add rule ip loss in iif eth0 numgen random mod 100 < $2 drop"
}
lose_none() { on "$1" nft delete table ip loss; }
# Processes of hosts, by their network; only ours have it
of_hosts() {
    for i in $(seq 0 "$hosts"); do
        [ -s "$tmp/host.$i" ] || continue
        own=$(readlink "/proc/$(cat "$tmp/host.$i")/ns/net")
        for process in /proc/[0-9]*; do
            [ "$(readlink "$process/ns/net" 2>/dev/null)" != "$own" ] || echo "${process#/proc/}"
        done
    done
}
hosts_close() {
    for process in $(of_hosts); do kill -9 "$process" 2>/dev/null; done
}
# wait_for SECONDS COMMAND...: until it succeeds; its last status
wait_for() {
    tries=$(($1 * 10))
    shift
    while [ $tries -gt 0 ] && ! "$@" >/dev/null 2>&1; do
        sleep 0.1
        tries=$((tries - 1))
    done
    "$@" >/dev/null 2>&1
}
