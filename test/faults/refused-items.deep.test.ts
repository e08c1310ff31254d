import './refused-items.test.ts'
