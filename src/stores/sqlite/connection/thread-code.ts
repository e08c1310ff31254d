/**
 * The code of the thread, to start it with. The build replaces this module by one that holds the code whole, as a data: URL
 * (`build/main.ts`).
 */
export const threadCode = (): URL => new URL('./thread.ts', import.meta.url)
