/**
 * The files of the page, by name. The build replaces this module by one that holds them (`build/main.ts`); from the sources they are made
 * when they are first asked for.
 */
export async function pageFiles(): Promise<ReadonlyMap<string, string>> {
  // Not a constant of the import, or the build's own modules would be compiled into the package.
  const maker = new URL('../../build/page.ts', import.meta.url)
  const { buildPage }: { buildPage: () => Promise<Map<string, string>> } = await import(maker.href)
  return buildPage()
}
