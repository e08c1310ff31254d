import './sqlite.test.ts'
