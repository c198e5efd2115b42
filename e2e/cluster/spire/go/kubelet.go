package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const defaultRoot = "/var/lib/kubelet"

// kubelet is a process of a node and the folder in which it keeps its files.
type kubelet struct {
	pid  int
	root string
}

// findKubelet finds the kubelet of a node among the processes of proc: the one of that name, or the only one.
func findKubelet(proc, node string) (kubelet, error) {
	folders, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil {
		return kubelet{}, err
	}
	var all []kubelet
	for _, folder := range folders {
		args := arguments(filepath.Join(folder, "cmdline"))
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil || len(args) == 0 || filepath.Base(args[0]) != "kubelet" {
			continue
		}
		found := kubelet{pid, option(args, "root-dir", defaultRoot)}
		if option(args, "hostname-override", "") == node {
			return found, nil
		}
		all = append(all, found)
	}
	if len(all) != 1 {
		return kubelet{}, fmt.Errorf("%d kubelets, and none of them says that it is %s", len(all), node)
	}
	return all[0], nil
}

// arguments of a process; none when it has ended meanwhile.
func arguments(file string) []string {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00")
}

// option is the value of --name VALUE or --name=VALUE.
func option(args []string, name, missing string) string {
	for index, arg := range args {
		if arg == "--"+name && index+1 < len(args) {
			return args[index+1]
		}
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return missing
}
