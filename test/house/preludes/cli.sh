# The program runs from the package, on a store that has the queue of the page.
millpond() {
  "$NODE" "$PACKAGE/dist/cli/main.js" "$@"
}
export MILLPOND_STORE=sqlite:jobs.db
"$NODE" --input-type=module -e "
  const { Millpond } = await import('$PACKAGE/dist/index.js')
  const pond = await Millpond.open('sqlite:jobs.db')
  await pond.queue('mails').push(1)
  await pond.close()
"
