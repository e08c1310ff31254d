/**
 * The code of a handler's process, to start it with. The build replaces this module by one that holds the code whole, as a data: URL
 * (`build/main.ts`).
 */
export const childCode = (): URL => new URL('./child.ts', import.meta.url)
