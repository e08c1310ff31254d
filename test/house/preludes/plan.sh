# The program runs from the sources.
npx() {
  shift
  "$NODE" "$ROOT/src/cli/main.ts" "$@"
}
"$NODE" --input-type=module -e "
  const { Millpond } = await import('$ROOT/src/index.ts')
  const pond = await Millpond.open('sqlite:app.db')
  await pond.queue('mails').push(1)
  await pond.close()
"
