# The program runs from the package.
npx() {
  shift
  "$NODE" "$PACKAGE/dist/cli/main.js" "$@"
}
"$NODE" --input-type=module -e "
  const { Millpond } = await import('$PACKAGE/dist/index.js')
  const pond = await Millpond.open('sqlite:app.db')
  await pond.queue('mails').push(1)
  await pond.close()
"
