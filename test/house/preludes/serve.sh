# In the blocks of docs/serve.md, the service runs on a free port instead of 8080, from the package.
set -eu
npx() {
  [ "$1" = millpond ] && shift
  "$NODE" "$PACKAGE/dist/cli/main.js" "$@" --port "$PORT" >service.log 2>&1 &
  service=$!
  until command curl -s "$ORIGIN/healthz" >/dev/null; do
    kill -0 $service || { cat service.log; exit 1; }
    sleep 0.05
  done
}
curl() {
  [ -n "${service-}" ] || npx millpond serve --store sqlite:jobs.db
  for argument; do
    shift
    case $argument in localhost:8080*) argument="$ORIGIN${argument#localhost:8080}" ;; esac
    set -- "$@" "$argument"
  done
  command curl -sS --fail-with-body "$@"
}
trap '[ -z "${service-}" ] || kill $service' EXIT
