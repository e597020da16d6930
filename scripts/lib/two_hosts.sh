# shellcheck shell=bash
# To be sourced, with `name` and `rankine` set: two hosts of this machine's making, network namespaces
# joined by a cable, and Open MPI over TCP between them. Needs root and iproute2. Gives stop, home (a
# temporary folder), processes, on_two_hosts, and the hosts' names a and b; all is gone at exit.
stop() {
  echo "$name: $1" >&2
  exit "${2:-1}"
}
[ "$(id -u)" -eq 0 ] || stop "network namespaces need root" 3
for program in ip unshare; do
  command -v "$program" >/dev/null || stop "no $program; apt-get install iproute2 util-linux" 3
done
mpirun=$(command -v mpirun.openmpi || command -v mpirun) ||
  stop "no mpirun; apt-get install openmpi-bin" 3
[[ $("$mpirun" --version) =~ (Open MPI|OpenRTE) ]] || stop "$mpirun is not Open MPI's" 3
[ -x "$rankine" ] || stop "no $rankine; run make first, or name it with RANKINE=FILE" 3

home=$(mktemp -d)
a=rankine-a-$$ b=rankine-b-$$
network=10.77.$(($$ % 256))
# Those of the two hosts. One that ends while it is looked at makes `ip` fail.
processes() {
  for host in "$a" "$b"; do ip netns pids "$host" 2>/dev/null || true; done
}
cleanup() {
  local code=$?
  trap - EXIT
  if [ "$code" -ne 0 ]; then
    for log in "$home"/*.log; do
      [ -e "$log" ] || continue
      echo "== the end of ${log##*/}" >&2
      tail -n 15 "$log" >&2
    done
  fi
  processes | xargs -r kill -9 2>/dev/null || true
  for host in "$a" "$b"; do ip netns del "$host" 2>/dev/null || true; done
  rm -rf "$home"
  exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

ip netns add "$a" 2>/dev/null || stop "this machine does not allow network namespaces" 3
ip netns add "$b"
ip -n "$a" link add cable type veth peer name cable netns "$b" || stop "this kernel has no veth" 3
number=1
for host in "$a" "$b"; do
  ip -n "$host" address add "$network.$number/24" dev cable
  ip -n "$host" link set cable up
  ip -n "$host" link set lo up
  number=$((number + 1))
done

# What Open MPI calls in place of ssh: options, the host, the command for its shell.
cat >"$home/agent" <<AGENT
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
case \$1 in
  $network.1) host=$a ;;
  $network.2) host=$b ;;
  *) exit 1 ;;
esac
shift
exec ip netns exec \$host unshare --uts sh -c "hostname \$host; \$*"
AGENT
chmod +x "$home/agent"
# Two ranks, one on each host.
on_two_hosts() {
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$home/agent" "$network.1" exec \
    "$mpirun" --mca plm_rsh_agent "$home/agent" --host "$network.1:1,$network.2:1" -n 2 \
    --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include "$network.0/24" \
    --mca oob_tcp_if_include "$network.0/24" --mca orte_tmpdir_base "$home" --bind-to none "$@"
}
