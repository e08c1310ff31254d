# The program runs from the package.
npx() {
  shift
  "$NODE" "$PACKAGE/dist/cli/main.js" "$@"
}
