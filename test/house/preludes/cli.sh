# The program runs from the sources, on a store that has the queue of the page.
millpond() {
  "$NODE" "$ROOT/src/cli/main.ts" "$@"
}
export MILLPOND_STORE=sqlite:jobs.db
"$NODE" --input-type=module -e "
  const { Millpond } = await import('$ROOT/src/index.ts')
  const pond = await Millpond.open('sqlite:jobs.db')
  await pond.queue('mails').push(1)
  await pond.close()
"
