/** The handler of an isolated worker of batches: does nothing. */
export default (): void => {}
