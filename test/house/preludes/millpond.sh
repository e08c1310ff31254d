# The program runs from the sources.
npx() {
  shift
  "$NODE" "$ROOT/src/cli/main.ts" "$@"
}
