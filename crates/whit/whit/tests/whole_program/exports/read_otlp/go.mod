module whit.test/read-otlp

go 1.25.0

require (
	go.opentelemetry.io/proto/otlp/profiles/v1development v0.4.0
	google.golang.org/protobuf v1.36.11
)

require go.opentelemetry.io/proto/otlp v1.11.0 // indirect
