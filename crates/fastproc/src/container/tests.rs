//! Paths of cgroups in all forms that appear in documentation, tests and issues of these projects.

use super::{Origin, Runtime};

use Runtime::{Containerd, CriO, Docker, Lxc, Nspawn, Podman};

/// The origin of a path, the runtime that it names, and the path: `<…>` is the container in it, and `{…}` the pod.
#[rustfmt::skip]
const PATHS: &[(&str, Option<Runtime>, &str)] = &[
    // Docker
    ("neuvector/neuvector cgroup_test.go", Some(Docker),
     "/system.slice/docker-<9ec39b91f3d70e1beff50a308f77067065ea6be0d91a3378375056cd4422cf3d>.scope"),
    ("neuvector/neuvector cgroup_test.go, Debian", None, "/<4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970>"),
    ("netdata/netdata#13470", Some(Docker), "/docker/<046c7a5b5bf78ee0f178688bbfb31642f64af25380e98b0cee1966533c1b8df5>"),
    ("moby/moby#45378, Docker in a pod of CRI-O", Some(Docker),
     "/docker/<9207737cd20ff309d023da579d810f84ffb7d9bcdebb4b527ba26d14160f1bf8>"),
    ("kubernetes/kubernetes#18202, deleted", Some(Docker),
     "/docker/<81950eac55062e5d8e7b5567d1036e4b146dfe212bdc9263c97347e6ce86b904> (deleted)"),
    ("jpetazzo/dind#87, with whole ids", Some(Docker),
     "/system.slice/docker-<611a8d133d2c636e777745e4dbb1d5866a068fe0f6cc87033e52fe139fca5ba1>.scope/docker/8c1e75bb325eb9c64571326952a6507132f1fc7eba7cd5b694422abe39fc7ed8"),
    ("moby/moby hack/dind, which moves the outer processes", Some(Docker),
     "/docker/<34a267a4bb8fda59fdbb1870af4cba105b4fad5f0bcfa8f9d0018cf74eb8a64b>/init"),
    ("d2iq-archive/kubernetes-mesos#565", None, "/system.slice/docker.service"),
    // Docker in Kubernetes
    ("kontena/pharos-cluster#440", Some(Docker),
     "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{9692aa0e_748e_11e8_8dfa_76d458035df6}.slice/docker-<abddff03dfd7710c79a750ce3e730365cbb2c8247a974170c1062683bc3e9152>.scope"),
    ("cri-o/cri-o#842, cgroupfs", None,
     "/kubepods/burstable/pod{941dc160-92df-11e7-b27e-507b9d4141fa}/<2b4d747eae5ed34775c069d913c81833b67a0148e731a36535c9f3b97ebfb87f>"),
    ("spiffe/spire k8s_test.go, a UID with dashes in a slice", Some(Docker),
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{2c48913c-b29f-11e7-9350-020968147796}.slice/docker-<9bca8d63d5fa610783847915bcff0ecac1273e5b4bed3f6fa1b07350e0135961>.scope"),
    ("spiffe/spire k8s_test.go, Docker for desktop", None,
     "/kubepods/kubepods/besteffort/pod{6bd2a4d3-a55a-4450-b6fd-2a7ecc72c904}/<a55d9ac3b312d8a2627824b6d6dd8af66fbec439bf4e0ec22d6d9945ad337a38>"),
    // containerd
    ("DeterminateSystems/nix-installer-action#140", Some(Containerd),
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{be2cead1_f604_40bd_a52d_05f47d1ae7ef}.slice/cri-containerd-<c3bff63004020bec1fc8ca3e517cabf95535ef60c5a4a19b146753a714c92ce2>.scope"),
    ("open-telemetry/opentelemetry-java#4507", Some(Containerd),
     "/system.slice/containerd.service/kubepods-besteffort-pod{0125ec2f_b64a_4868_8f5b_94b56cbab864}.slice:cri-containerd:<ee4b20e90ac7f42a10bd004d05646b13d8ab5e2c5e7cbc01abf8006bac016459>"),
    ("spiffe/spire k8s_test.go, at the root", Some(Containerd),
     "/kubepods-besteffort-pod{72f7f152_440c_66ac_9084_e0fc1d8a910c}.slice:cri-containerd:<b2a102854b4969b2ce98dc329c86b4fb2b06e4ad2cc8da9d8a7578c9cd2004a2>"),
    ("opentelemetry-java-instrumentation, a guaranteed pod", Some(Containerd),
     "/system.slice/containerd.service/kubepods-pod{87a18a64_b74a_454a_b10b_a4a36059d0a3}.slice:cri-containerd:<05c48c82caff3be3d7f1e896981dd410e81487538936914f32b624d168de9db0>"),
    ("Qard/container-info", None,
     "/kubepods/besteffort/pod{74c13223-5a00-11e9-b385-42010a80018d}/<34dc0b5e626f2c5c4c5170e34b10e7654ce36f0fcd532739f4445baabea03376>"),
    ("k3s-io/k3s#3005, rootless", None,
     "/user.slice/user-1001.slice/user@1001.service/k3s-rootless.service/kubepods/pod{d0eb6921-c81a-4214-b36c-d3b9bb212fac}/<671b393f08437d7e89e234d9d395aecef155104c7c241f5701844360ffebacac>"),
    ("containerd/nerdctl, systemd", Some(Containerd),
     "/system.slice/nerdctl-<28b29b54a96c2523f0240e1cff00365e2f67d6e39103742cfa0321657466756e>.scope"),
    ("containerd/nerdctl, cgroupfs: its namespace", Some(Containerd),
     "/default/<368b9cfa19de0a0be5eb1e1e9a892aacd82d74be4ef337fb7c288538b51e5192>"),
    ("kata-containers/kata-containers", None,
     "/kubepods/besteffort/pod{1b2f0c4e-7e39-4a9c-8f1d-0a9b8c7d6e5f}/kata_<41ebb90fa201393b1c686f53533c8dcc803e582a42e7d9d962da2652550e32c4>"),
    // CRI-O
    ("moby/moby#45378", Some(CriO),
     "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{79227834_afc5_4f67_bf05_594a0d4d36bb}.slice/crio-<b8733da86dee2260690fa0405587ed3beb9d3dca01f39297008529b4a8654743>.scope"),
    ("opencontainers/runc#4620, with crun's folder", Some(CriO),
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{a5c1f8d5_1919_434d_add7_4afaafdaef89}.slice/crio-<5eed917563583925ffdbd40a64efb2aaffe58638e57add8becaf460fe74f5b1c>.scope/container"),
    ("cri-o/cri-o#3259, a pod from a file of the kubelet", Some(CriO),
     "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{0fb386ed7a9f3e4462d5182de8ccaa2b}.slice/crio-<31b710e9b2340e9f18fbd3a14b19a44e76a4192e668239e5cfd9597681eed9bc>.scope"),
    ("cri-o/cri-o#10074, cgroupfs", Some(CriO),
     "/init/kubepods/burstable/pod{9def17ab-bcb6-49d4-8c1a-a1e6a760699d}/crio-<9c48382024fe9fc9410c7a067803913f67d2f2efaad8dc62b7f0bfbd7ff2e45c>"),
    ("openshift/machine-config-operator#1296, conmon in the pod", None,
     "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{79227834_afc5_4f67_bf05_594a0d4d36bb}.slice/crio-conmon-b8733da86dee2260690fa0405587ed3beb9d3dca01f39297008529b4a8654743.scope"),
    ("cri-o/cri-o#8904, conmon of the system", None,
     "/system.slice/crio-conmon-0644511bc2734f5ff9f9532fdecddb9f1b92597fe269168b137ada040c3a3118.scope"),
    ("cri-o/cri-o runtime_oci_linux.go, conmon with cgroupfs", None,
     "/kubepods/besteffort/pod{9def17ab-bcb6-49d4-8c1a-a1e6a760699d}/crio-conmon-9c48382024fe9fc9410c7a067803913f67d2f2efaad8dc62b7f0bfbd7ff2e45c"),
    // Podman
    ("podman-container-tools/podman#20423", Some(Podman),
     "/user.slice/user-0.slice/user@0.service/machine.slice/libpod-<cf21d19260ace8544fe8b769fc2638bf2c0873dfbfff0b6253f0569b26a1d5eb>.scope/container"),
    ("podman-container-tools/podman#10602, systemd in the container", Some(Podman),
     "/machine.slice/libpod-<2521e906f0a0c758c3a7dc4fd68c197e32e96abb4b36807d0b0ede6d014a7c24>.scope/init.scope"),
    ("podman-container-tools/podman#13673, a unit of its own", Some(Podman),
     "/srv.slice/container-homeassistant.service/libpod-payload-<c4e8e0d642078c90dde4a8a65883a7c0bee26f751d7c6a3096dc322519c658d3>"),
    ("podman-container-tools/podman#13673, conmon beside it", None, "/srv.slice/container-homeassistant.service/runtime"),
    ("podman-container-tools/podman#13673, in a pod", Some(Podman),
     "/machine.slice/machine-libpod_pod_ddf44d54b520f0b4469fcd01c3155ca49e6911dc2175471eb3a7b789187a7a89.slice/libpod-<1dadda571b14eefb3158a15d0fff7e0089f9dd92f922679ed0116cccdfe8bb0f>.scope/container"),
    ("falcosecurity/libs#1613", None,
     "/machine.slice/libpod-conmon-a2bc7b153f034b17f358cde43a7f8c7475147e8a0d1b2573c26473244ec44ce4.scope"),
    ("podman-container-tools/podman#826, cgroupfs", Some(Podman),
     "/libpod_parent/libpod-<a2bc7b153f034b17f358cde43a7f8c7475147e8a0d1b2573c26473244ec44ce4>/ctr"),
    ("podman-container-tools/podman#826, conmon", None,
     "/libpod_parent/libpod-a2bc7b153f034b17f358cde43a7f8c7475147e8a0d1b2573c26473244ec44ce4/conmon"),
    ("podman-container-tools/podman, a pod with cgroupfs", None,
     "/libpod_parent/ddf44d54b520f0b4469fcd01c3155ca49e6911dc2175471eb3a7b789187a7a89"),
    ("containers/qm", Some(Podman),
     "/QM.slice/qm.service/libpod-payload-<00de006493bc970788d6c830beb494a58a9a2847a5eda200812d3a8b4e214814>/system.slice/dbus-broker.service"),
    // LXC, LXD and Incus
    ("lxc/lxc#2782, payload", Some(Lxc), "/lxc.payload/<c1>/init.scope"),
    ("canonical/lxd#8811", Some(Lxc), "/lxc.payload.<f1>"),
    ("opensvc/opensvc#408", Some(Lxc), "/lxc.payload.<mail>/system.slice/postfix.service"),
    ("canonical/lxd#11716", None, "/lxc.monitor.busybox"),
    ("canonical/lxd#5603", Some(Lxc), "/lxc/<web>/ns/init.scope"),
    ("containers/crun#678, podman in LXC", Some(Lxc),
     "/lxc.payload.<ci>/machine.slice/libpod-2521e906f0a0c758c3a7dc4fd68c197e32e96abb4b36807d0b0ede6d014a7c24.scope/container"),
    // systemd-nspawn
    ("systemd/systemd#18104", Some(Nspawn), "/machine.slice/machine-<deb>.scope/payload/system.slice/ssh.service"),
    ("systemd/systemd#4181", Some(Nspawn), r"/machine.slice/systemd-nspawn@<dev\x2dweb>.service/payload"),
    ("libvirt, a virtual machine", None, r"/machine.slice/machine-qemu\x2d18\x2dtest10.scope/libvirt/vcpu0"),
    // Nodes that are containers
    ("parca-dev/parca-agent, kind with systemd", Some(Docker),
     "/docker/<7e844a947116714d8576372366bde54cd4bb15a62d732437781b41a6fec56ccc>/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod1c5d0bde_130b_4784_a547_f45e619f2514.slice/cri-containerd-bd6fe092f10330edc4ad6e283948c2ef1a455af0b5063b90b2b37d3d850d6690.scope"),
    ("kind, its own daemons", Some(Docker),
     "/system.slice/docker-<fbc411e743aa89de421746b3fc92e4fa475d0f2dc92967fb39c2f78574799701>.scope/kubelet.slice/kubelet.service"),
    ("spiffe/spire k8s_test.go, kind with cgroupfs", Some(Docker),
     "/docker/<93529524695bb00d91c1f6dba692ea8d3550c3b94fb2463af7bc9ec82f992d26>/kubepods/besteffort/poda2830d0d-b0f0-4ff0-81b5-0ee4e299cf80/09bc3d7ade839efec32b6bec4ec79d099027a668ddba043083ec21d3c3b8f1e6"),
    ("kubernetes/minikube#11280, CRI-O in Docker", Some(Docker),
     "/docker/<d6701ec289c56e4391acb11d07474b3139466857a305490575508a8b7a9fcf22>/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod2ca4a155_3599_498d_bb9d_4446693fa3ea.slice/crio-0ba8ac17e4e7a31fb82279503552fe94e64bab4745bf6fd2ff231e7c8ca8bed0.scope"),
    ("kubernetes/test-infra#37440, Docker in a pod", Some(Containerd),
     "/kubepods.slice/kubepods-pod{87a18a64_b74a_454a_b10b_a4a36059d0a3}.slice/cri-containerd-<c3bff63004020bec1fc8ca3e517cabf95535ef60c5a4a19b146753a714c92ce2>.scope/dind/docker/9207737cd20ff309d023da579d810f84ffb7d9bcdebb4b527ba26d14160f1bf8"),
    // Made by whoever is in the outer container
    ("a pod and its container below another one", Some(Docker),
     "/system.slice/docker-<611a8d133d2c636e777745e4dbb1d5866a068fe0f6cc87033e52fe139fca5ba1>.scope/kubepods/pod095e82d2-713c-467a-a18a-cbb50a075296/6d1234da0f5aa7fa0ccae4c7d2d109929eb9a81694e6357bcd4547ab3985911b"),
    // From another cgroup namespace
    ("spiffe/spire k8s_test.go", None,
     "/../../../burstable/pod{095e82d2-713c-467a-a18a-cbb50a075296}/<6d1234da0f5aa7fa0ccae4c7d2d109929eb9a81694e6357bcd4547ab3985911b>"),
    ("spiffe/spire k8s_test.go, KubeEdge", Some(CriO),
     "/../crio-<45490e76e0878aaa4d9808f7d2eefba37f093c3efbba9838b6d8ab804d9bd814>.scope"),
    // Amazon ECS
    ("open-telemetry/opentelemetry-js-contrib#2855", None,
     "/ecs/c23e5f76c09d438aa1824ca4058bdcab/<c23e5f76c09d438aa1824ca4058bdcab-1234678>"),
    ("monitoringartist/zabbix-docker-monitoring#85, a task alone", None, "/ecs/48cb34f5-cd39-4d59-9bb9-89f3c1611afd"),
    // No container
    ("spiffe/spire k8s_test.go, a pod from a file, and no container", None, "/kubepods/pod{2732ca68f6358eba7703fb6f82a25c94}"),
    ("systemd, a mount of a container", None,
     "/system.slice/run-containerd-io.containerd.runtime.v2.task-k8s.io-41ebb90fa201393b1c686f53533c8dcc803e582a42e7d9d962da2652550e32c4-rootfs.mount"),
    ("systemd, a session", None, "/user.slice/user-0.slice/session-4.scope"),
    ("the root", None, "/"),
    ("nothing", None, ""),
];

#[test]
fn paths_name_containers_and_pods() {
    assert!(PATHS.len() >= 30);
    for &(from, runtime, marked) in PATHS {
        let between = |begins, ends| {
            let (_, rest) = marked.split_once(begins)?;
            rest.split_once(ends).map(|(found, _)| found)
        };
        let path = marked.replace(['<', '>', '{', '}'], "");
        let origin = Origin::from_cgroup(path.as_bytes());
        let found = origin.container.map(String::from_utf8_lossy);
        let uid = origin.pod_uid.map(|uid| uid.to_string());
        let expected = between('{', '}').map(|pod| pod.replace('_', "-"));
        let found = (origin.runtime, found.as_deref(), uid);
        assert_eq!(
            found,
            (runtime, between('<', '>'), expected),
            "{from}: {path}"
        );
    }
}

#[test]
fn machines_have_their_plain_names() {
    for (path, machine) in [
        ("/machine.slice/machine-deb.scope", Some("deb")),
        (
            r"/machine.slice/systemd-nspawn@dev\x2dweb.service/payload",
            Some("dev-web"),
        ),
        (
            r"/machine.slice/machine-qemu\x2d1\x2dvps.scope",
            Some("qemu-1-vps"),
        ),
        (r"/machine.slice/machine-a\x2.scope", Some(r"a\x2")),
        ("/machine.slice/machine-.scope", None),
        ("/system.slice/machine-deb.scope", None),
        ("/lxc/a/machine.slice/machine-deb.scope", None),
    ] {
        let origin = Origin::from_cgroup(path.as_bytes());
        let found = origin.machine.as_deref().map(String::from_utf8_lossy);
        assert_eq!(found.as_deref(), machine, "{path}");
    }
}

#[test]
fn units_and_slices_are_those_of_the_host() {
    let path = b"/system.slice/docker.service/a.scope";
    let origin = Origin::from_cgroup(path);
    assert_eq!(origin.unit, Some(b"docker.service".as_slice()));
    assert_eq!(origin.slice, b"system.slice");
}
