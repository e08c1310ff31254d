/**
 * The files of the page, by name. The build replaces this module by one that holds them (`build/main.ts`); from the sources they are made
 * when they are first asked for.
 */
export async function pageFiles(): Promise<ReadonlyMap<string, string>> {
  const { buildPage } = await import('../../build/page.ts')
  return buildPage()
}
