// Sums by function of OTLP profiles, read with the Go module that OpenTelemetry publishes. Unknown fields are errors:
// a field whose number has changed would be one.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

type sums map[string]map[string][2]uint64

func main() {
	bytes, err := os.ReadFile(os.Args[1])
	check(err)
	data := &profiles.ProfilesData{}
	check(proto.Unmarshal(bytes, data))
	check(knownOnly(data.ProtoReflect()))
	events, notes := sums{}, map[string]string{}
	for _, resource := range data.ResourceProfiles {
		for _, attribute := range resource.Resource.Attributes {
			notes[attribute.Key] = attribute.Value.GetStringValue()
		}
		for _, scope := range resource.ScopeProfiles {
			for _, profile := range scope.Profiles {
				add(events, data.Dictionary, profile)
			}
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"events": events, "notes": notes}))
}

func add(events sums, tables *profiles.ProfilesDictionary, profile *profiles.Profile) {
	name := tables.StringTable[profile.SampleType.TypeStrindex]
	if events[name] == nil {
		events[name] = map[string][2]uint64{}
	}
	for _, sample := range profile.Samples {
		location := tables.LocationTable[tables.StackTable[sample.StackIndex].LocationIndices[0]]
		function := tables.FunctionTable[location.Lines[0].FunctionIndex]
		sum := events[name][tables.StringTable[function.NameStrindex]]
		for _, value := range sample.Values {
			sum[0]++
			sum[1] += uint64(value)
		}
		events[name][tables.StringTable[function.NameStrindex]] = sum
	}
}

// knownOnly walks all messages.
func knownOnly(message protoreflect.Message) error {
	if unknown := message.GetUnknown(); len(unknown) > 0 {
		return fmt.Errorf("%s has fields that the module does not know", message.Descriptor().FullName())
	}
	var found error
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Message() == nil {
			return true
		}
		if !field.IsList() {
			found = knownOnly(value.Message())
			return found == nil
		}
		for at := 0; at < value.List().Len() && found == nil; at++ {
			found = knownOnly(value.List().Get(at).Message())
		}
		return found == nil
	})
	return found
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
