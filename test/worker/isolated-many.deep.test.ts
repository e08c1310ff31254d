import './isolated-many.test.ts'
