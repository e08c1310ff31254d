/**
 * The code of a handler's process, to start it with. The build replaces this module by a data: URL that holds the code whole
 * (`build/main.ts`).
 */
export const CHILD = new URL('./child.ts', import.meta.url)
