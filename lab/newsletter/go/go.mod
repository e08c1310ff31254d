module newsletter

go 1.19
